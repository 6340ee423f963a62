import { VaultError } from '../adapters/vault/vault-error.ts';
import { checkMasterKey } from '../domain/wallets/wallets/wallet-keys.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import { StartError } from '../start-error.ts';
import type { Database } from '../storage/open-database.ts';

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
