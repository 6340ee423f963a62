import { transferAccount } from '../../domain/wallets/users/transfer-account.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const run: OperatorHandler<'takeOverUser'> = async ({ path, body }, { change, clock, ids, by }) => {
  const nowMs = clock.now();
  const users = { fromUserId: body.from_user_id, toUserId: path.user_id };
  const { row, linkedAccounts } = await change((em) => transferAccount({ em, ids, nowMs, by }, users));
  return { id: row.id, app_id: row.app_id, linked_accounts: linkedAccounts.map(({ type }) => type) };
};
