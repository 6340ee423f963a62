import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { type WalletRow, walletColumns } from '../wallets/wallet-row.ts';

// HOT: the `wallets` table is on the measured path (bench `sqlite`, `postgres`), so every write to it goes through
// Kysely.

/**
 * The wallets a user owns or signs for, alone or as a member of a key quorum, including nested quorums. Newest first,
 * without archived wallets.
 */
export async function listUserWallets(
  context: Pick<OperationContext, 'app' | 'em'>,
  userId: string,
): Promise<WalletRow[]> {
  return listWalletsOfQuorums(context, await listUserQuorumIds(context, userId));
}

/** Ids of the key quorums that have a user as a member, directly or through a nested quorum. */
export async function listUserQuorumIds(
  context: Pick<OperationContext, 'em'>,
  userId: string,
): Promise<string[]> {
  const direct = await quorumsWithMember(context, [userId], 'user');
  const nesting = await quorumsWithMember(context, direct, 'key_quorum');
  return [...new Set([...direct, ...nesting])];
}

/** The wallets that any of these key quorums owns or signs for; newest first, without archived wallets. */
export async function listWalletsOfQuorums(
  context: Pick<OperationContext, 'app' | 'em'>,
  quorumIds: readonly string[],
): Promise<WalletRow[]> {
  if (quorumIds.length === 0) return [];
  return context.em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select(walletColumns)
    .where('app_id', '=', context.app.id)
    .where('archived_at_ms', 'is', null)
    .where((eb) =>
      eb.or([
        eb('owner_id', 'in', quorumIds),
        eb(
          'id',
          'in',
          eb.selectFrom('wallet_signers').select('wallet_id').where('signer_id', 'in', quorumIds),
        ),
      ]),
    )
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .execute();
}

async function quorumsWithMember(
  { em }: Pick<OperationContext, 'em'>,
  members: readonly string[],
  kind: 'user' | 'key_quorum',
): Promise<string[]> {
  if (members.length === 0) return [];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members')
    .select('key_quorum_id')
    .where('member', 'in', [...members])
    .where('kind', '=', kind)
    .execute();
  return rows.map((row) => row.key_quorum_id);
}
