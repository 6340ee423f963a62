import { systemClock } from '../adapters/runtime.ts';
import type { VaultSettings } from '../config/signer.ts';
import { recordChange } from '../domain/access/operators/operator.ts';
import { rotateSealedKeys } from '../domain/base/sealed-keys/rotate-sealed-keys.ts';
import { entities } from '../domain/tables.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { openDatabase } from '../storage/open-database.ts';
import { commandLine } from './administration.ts';
import { requireMasterKey, withVault } from './open-vault.ts';

/** Re-wraps every sealed key under the current master key and returns their number. Throws StartError. */
export function rotateKeys(
  { databaseUrl, vault: settings }: { readonly databaseUrl: string; readonly vault: VaultSettings },
  onProgress: (rewrapped: number) => void,
): Promise<number> {
  return withVault(settings, (vault) => rotateUnder(vault, databaseUrl, onProgress));
}

async function rotateUnder(
  vault: KeyVault,
  url: string,
  onProgress: (rewrapped: number) => void,
): Promise<number> {
  const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 });
  try {
    const advice = 'add the key they were sealed under to CUSTOS_PREVIOUS_MASTER_KEYS';
    await requireMasterKey(database, vault, advice);
    return await rotateSealedKeys(vault, inUnitOf(unitsOf(database)), {
      onProgress,
      record({ em, notes }, moved) {
        const change = { action: 'rotateMasterKey', targets: { rewrapped: String(moved) } };
        const context = { em, notes, nowMs: systemClock.now(), by: commandLine };
        return recordChange(context, { ...change, appId: null });
      },
    });
  } finally {
    await database.close();
  }
}
