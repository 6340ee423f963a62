import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import type { DatabaseConfig } from '../config/config.ts';
import { transferAccount as transfer } from '../domain/wallets/users/transfer-account.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { commandLine, requireMigrated, withDatabase } from './administration.ts';

/** The command line's representation of a user. */
interface AdministeredUser {
  readonly id: string;
  readonly app_id: string;
  /** The types of the accounts. */
  readonly linked_accounts: readonly string[];
}

/**
 * Moves the only account of a user to another user.
 *
 * @throws ApiError not_found, invalid_data, invalid_state
 */
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
