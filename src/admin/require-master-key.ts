import type { SqlEntityManager } from '@mikro-orm/sql';
import { VaultError } from '../adapters/vault-error.ts';
import { checkMasterKey } from '../domain/wallets/wallets/check-master-key.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import { StartError } from '../start-error.ts';
import type { Database } from '../storage/open-database.ts';

/** Sees before the first request that the stored wallets open under the vault's master key; else StartError. */
export async function requireMasterKey(database: Database, vault: KeyVault, advice: string): Promise<void> {
  try {
    await database.orm.em.fork().transactional((em) => checkMasterKey(em as SqlEntityManager, vault));
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    const told = 'the wallets of this database are sealed under another master key';
    throw new StartError(`${told} (${error.message}); ${advice}`, { cause: error });
  }
}
