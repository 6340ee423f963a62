import { silentLog } from '../adapters/log.ts';
import { systemEntropy } from '../adapters/runtime.ts';
import type { VaultSettings } from '../config/signer.ts';
import { StartError } from '../config/start-error.ts';
import { checkMasterKey } from '../domain/wallets/wallets/wallet-keys.ts';
import { VaultError } from '../keys/master-keys.ts';
import { productionVault } from '../keys/production-keys.ts';
import { openSignerVault } from '../keys/signer-client.ts';
import { connectToSocket } from '../keys/signer-connection.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import type { Database } from '../storage/open-database.ts';

/** Runs a command's work with the vault of a production server: its signer, or the master keys themselves. */
export async function withVault<T>(
  settings: VaultSettings,
  work: (vault: KeyVault) => Promise<T>,
): Promise<T> {
  if (settings.kind === 'local') return work(productionVault(settings.masterKeys, systemEntropy));
  const owner = { path: settings.path, uid: settings.uid ?? process.getuid?.() ?? -1 };
  const signer = await openSignerVault(() => connectToSocket(owner), { log: silentLog });
  try {
    return await work(signer.vault);
  } finally {
    await signer.close();
  }
}

/** Throws StartError when the stored wallets do not open under the vault's master key. Called before serving. */
export async function requireMasterKey(database: Database, vault: KeyVault, advice: string): Promise<void> {
  try {
    await checkMasterKey(database.orm.em.fork(), vault);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    const fault = 'the wallets in this database are sealed under another master key';
    throw new StartError(`${fault} (${error.message}); ${advice}`, { cause: error });
  }
}
