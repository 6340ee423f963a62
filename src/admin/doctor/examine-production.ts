import type { CellSettings } from '../../config/cells.ts';
import type { ServeConfig } from '../../config/config.ts';
import type { KeyStoreSettings } from '../../config/signer.ts';
import { ecBackend } from '../../engine/crypto/secp256k1.ts';
import type { Finding } from '../../tools/findings.ts';
import { checkDatabase } from './check-database.ts';
import {
  checkCheckpoint,
  checkCurve,
  checkDisk,
  checkEgress,
  checkNodes,
  checkProcess,
  checkPublicUrls,
  checkTls,
} from './check-surroundings.ts';

/** Checks all requirements of `custos serve`, in parallel. Changes nothing. */
export async function examineProduction(
  config: ServeConfig,
  outside: {
    /** Selects the signer or the master keys that opens the stored keys. */
    readonly keyStore: KeyStoreSettings;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly execArgv: readonly string[];
    readonly folder: string;
    /** The URL that receives a test request, sent in the way webhooks are sent. */
    readonly webhookUrl: string | undefined;
  },
): Promise<Finding[]> {
  const hasCells = config.cells.directoryUrl !== undefined;
  const examineCell = async (cell: CellSettings): Promise<Finding[]> => {
    const findings = [...(await checkDatabase(config, cell, outside.keyStore)), checkCheckpoint(cell)];
    return hasCells ? findings.map((each) => ({ ...each, name: `${cell.name}: ${each.name}` })) : findings;
  };
  const findings = await Promise.all([
    checkTls(config),
    checkPublicUrls(config),
    checkNodes(config),
    checkEgress(outside.webhookUrl),
    checkProcess(config, outside),
    checkDisk(outside.folder),
    checkCurve(ecBackend),
    ...config.cells.cells.map(examineCell),
  ]);
  return findings.flat();
}
