import { silentLog } from '../adapters/log.ts';
import { systemEntropy } from '../adapters/runtime.ts';
import type { KeyStoreSettings } from '../config/signer.ts';
import { StartError } from '../config/start-error.ts';
import { checkMasterKey } from '../domain/wallets/wallets/wallet-keys.ts';
import { KeyStoreError } from '../keys/master-keys.ts';
import { productionKeyStore } from '../keys/production-keys.ts';
import { openSignerKeyStore } from '../keys/signer-client.ts';
import { connectToSocket } from '../keys/signer-connection.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { Database } from '../storage/open-database.ts';

/** Runs a command's work with the key store of a production server: its signer, or the master keys themselves. */
export async function withKeyStore<T>(
  settings: KeyStoreSettings,
  work: (keyStore: KeyStore) => Promise<T>,
): Promise<T> {
  if (settings.kind === 'local') return work(productionKeyStore(settings.masterKeys, systemEntropy));
  const owner = { path: settings.path, uid: settings.uid ?? process.getuid?.() ?? -1 };
  const signer = await openSignerKeyStore(() => connectToSocket(owner), { log: silentLog });
  try {
    return await work(signer.keyStore);
  } finally {
    await signer.close();
  }
}

/**
 * Requires that the key store opens the stored wallets. Called before the server accepts requests.
 *
 * @throws StartError if they were sealed under another master key.
 */
export async function requireMasterKey(
  database: Database,
  keyStore: KeyStore,
  advice: string,
): Promise<void> {
  try {
    await checkMasterKey(database.orm.em.fork(), keyStore);
  } catch (error) {
    if (!(error instanceof KeyStoreError)) throw error;
    const fault = 'the wallets in this database are sealed under another master key';
    throw new StartError(`${fault} (${error.message}); ${advice}`, { cause: error });
  }
}
