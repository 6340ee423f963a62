import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { membershipsOf } from '../../access/key-quorums/find-key-quorum.ts';
import { type OperatorCaller, recordChange, requireOwnApp } from '../../access/operators/operator.ts';
import { didOf, findUserForUpdate, getUser } from '../../access/user-records/find-user.ts';
import type { StoredUser } from '../../access/user-records/user.entity.ts';
import { UserEntity } from '../../access/user-records/user.entity.ts';
import { recordEvent } from '../../base/events/events.ts';
import type { Tables } from '../../tables.ts';
import { WalletEntity } from '../wallets/wallet.entity.ts';
import { REPEATABLE_TYPES } from './linked-account-kinds.ts';
import { removeUser } from './user.ts';
import { UserSearchTermEntity } from './user-search-term.entity.ts';
import { linkedAccountView, userView } from './user-view.ts';

// KYSELY: users are read as stored rows by prepared queries.

type OperatorContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'> & {
  readonly by: OperatorCaller;
};
type TransferContext = OperatorContext & Pick<OperationContext, 'app'>;

/**
 * Moves the only account of one user to another user of the same app, and deletes the first user. It is for people
 * who have signed up twice. An operator calls it, so there is no authenticated app.
 *
 * The event of the transfer names the deletion, so `user.deleted` is not recorded as well.
 *
 * @throws ApiError not_found; invalid_data for a transfer to the same user; invalid_state when the first user has
 * another account or a wallet, or the second has an account of that kind.
 */
export async function transferAccount(
  operator: OperatorContext,
  { fromUserId, toUserId }: { readonly fromUserId: string; readonly toUserId: string },
): Promise<StoredUser> {
  const context = { ...operator, app: { id: await findAppOfUser(operator, toUserId) } };
  const { from, to } = await lockBoth(context, fromUserId, toUserId);
  const [account, ...others] = from.linkedAccounts;
  if (account === undefined || others.length > 0) {
    throw new ApiError('invalid_state', `the user \`${from.row.id}\` does not have exactly one account`);
  }
  await requireNoWallets(context, from);
  if (!REPEATABLE_TYPES.has(account.type) && to.linkedAccounts.some(({ type }) => type === account.type)) {
    const message = `the user \`${to.row.id}\` already has an account of type \`${account.type}\``;
    throw new ApiError('invalid_state', message);
  }
  const database = context.em.getKysely<Tables>();
  const position = 1 + Math.max(-1, ...to.linkedAccounts.map((linked) => linked.position));
  const change = { user_id: to.row.id, position };
  await database.updateTable('linked_accounts').set(change).where('id', '=', account.id).execute();
  await context.em.nativeUpdate(
    UserSearchTermEntity,
    { accountId: account.id },
    { userId: to.row.id, userCreatedAtMs: to.row.created_at_ms },
  );
  await removeUser(context, from.row);
  const moved = { ...account, ...change };
  const changed = { row: to.row, linkedAccounts: [...to.linkedAccounts, moved] };
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.transferred_account',
    payload: {
      fromUser: { id: from.row.id },
      toUser: userView(changed),
      account: linkedAccountView(moved),
      deletedUser: true,
    },
  });
  await recordChange(context, {
    appId: context.app.id,
    action: 'takeOverUser',
    targets: { user_id: to.row.id, from_user_id: from.row.id },
  });
  return changed;
}

async function findAppOfUser({ em, by }: OperatorContext, userId: string): Promise<string> {
  const id = didOf(userId);
  if (id === undefined) throw notFound('User');
  const user = await em.findOne(UserEntity, { id }, { disableIdentityMap: true });
  if (user === null) throw notFound('User');
  requireOwnApp(by, user.appId, 'User');
  return user.appId;
}

/**
 * Locks both users.
 *
 * INVARIANT: they are locked in the order of their ids, so that opposite transfers cannot deadlock.
 */
async function lockBoth(context: TransferContext, fromUserId: string, toUserId: string) {
  const [first, second] = [await getUser(context, fromUserId), await getUser(context, toUserId)];
  if (first === undefined || second === undefined) throw notFound('User');
  if (first.row.id === second.row.id) throw invalidField('/from_user_id', 'expected another user');
  const locked = new Map<string, StoredUser>();
  for (const id of [first.row.id, second.row.id].sort()) locked.set(id, await findUserForUpdate(context, id));
  return { from: locked.get(first.row.id)!, to: locked.get(second.row.id)! };
}

/** Refuses a first user who owns a wallet. After the transfer, nobody could satisfy the key quorum of its owner. */
async function requireNoWallets({ em }: TransferContext, { row, linkedAccounts }: StoredUser): Promise<void> {
  const database = em.getKysely<Tables>();
  const member = await membershipsOf(database, { kind: 'user', member: row.id }).limit(1).executeTakeFirst();
  const ofEntity = await em.count(WalletEntity, { entityId: row.id });
  const hasEmbedded = linkedAccounts.some(({ wallet }) => wallet !== null);
  if (member === undefined && ofEntity === 0 && !hasEmbedded) return;
  throw new ApiError('invalid_state', `the user \`${row.id}\` owns a wallet or belongs to a key quorum`);
}
