import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import type { DatabaseConfig } from '../config/config.ts';
import { restoreWallet as restore } from '../domain/wallets/wallets/update-wallet.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { commandLine, requireMigrated, withDatabase } from './administration.ts';

/** The command line's representation of a wallet. */
export interface AdministeredWallet {
  readonly id: string;
  readonly app_id: string;
  readonly address: string;
  readonly chain_type: string;
}

/**
 * Restores an archived wallet.
 *
 * @throws ApiError not_found, invalid_state
 */
export function restoreWallet(config: DatabaseConfig, walletId: string): Promise<AdministeredWallet> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const context = { ids: makeIds(systemEntropy), nowMs: systemClock.now(), by: commandLine };
    const inUnit = inUnitOf(unitsOf(database));
    const { id, app_id, address, chain_type } = await inUnit((em, notes) =>
      restore({ ...context, em, notes }, walletId),
    );
    return { id, app_id, address, chain_type };
  });
}
