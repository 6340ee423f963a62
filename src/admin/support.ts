import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import type { DatabaseConfig } from '../config/config.ts';
import { transferAccount as transfer } from '../domain/wallets/users/linked-accounts.ts';
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

/** Restores an archived wallet. Throws ApiError not_found, invalid_state. */
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

/** The command line's representation of a user. */
interface AdministeredUser {
  readonly id: string;
  readonly app_id: string;
  /** Their types. */
  readonly linked_accounts: readonly string[];
}

/** Moves the only account of a user to another one. Throws ApiError not_found, invalid_data, invalid_state. */
export function transferAccount(
  config: DatabaseConfig,
  users: { readonly fromUserId: string; readonly toUserId: string },
): Promise<AdministeredUser> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const context = { ids: makeIds(systemEntropy), nowMs: systemClock.now(), by: commandLine };
    const inUnit = inUnitOf(unitsOf(database));
    const { row, linkedAccounts } = await inUnit((em, notes) => transfer({ ...context, em, notes }, users));
    return { id: row.id, app_id: row.app_id, linked_accounts: linkedAccounts.map(({ type }) => type) };
  });
}
