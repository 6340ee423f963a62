import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { acceptAccounts } from '../../base/restores/restores.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { releasedStatuses } from '../transactions/transaction.entity.ts';
import type { BuiltTransaction } from './broadcast.ts';
import type { Account } from './nonces.ts';

// KYSELY: joins restores with the accepted accounts, and reads the highest nonce of an account.

/**
 * Selects the last restore after which accounts need a check, and whether this account has passed it. If there is none,
 * no other query is made.
 */
const selectRestore = prepareQuery<Account, { noticedAtMs: number; isAccepted: string | null }>(
  (database, { caip2, address }) =>
    database
      .selectFrom('restores')
      .leftJoin('accepted_accounts as accepted', (join) =>
        join
          .on((on) => on('accepted.caip2', '=', on.val(caip2)))
          .on((on) => on('accepted.address', '=', on.val(address))),
      )
      .select(['restores.noticed_at_ms as noticedAtMs', 'accepted.address as isAccepted'])
      .where('restores.are_all_accepted', '=', 0)
      .orderBy('restores.noticed_at_ms', 'desc')
      .limit(1),
);

/** Selects the highest nonce of the account that our transactions use. */
const selectHighestNonce = prepareQuery<Account, { highest: number | null }>((database, { caip2, address }) =>
  database
    .selectFrom((from) =>
      from
        .selectFrom('transactions')
        .select('nonce')
        .where('caip2', '=', caip2)
        .where('sender', '=', address)
        .where('nonce', 'is not', null)
        .where('status', 'not in', releasedStatuses)
        .unionAll(
          from
            .selectFrom('transaction_authorizations')
            .select('nonce')
            .where('caip2', '=', caip2)
            .where('authority', '=', address),
        )
        .as('used'),
    )
    .select((select) => select.fn.max('used.nonce').as('highest')),
);

/**
 * Requires that the chain has no transaction of the account that a restored database lacks. Without this check, a
 * request could repeat such a transaction. The check runs once per account and chain after a restore. It compares the
 * chain's nonce with our transactions. Where transactions have no nonce, the chain cannot tell, and an operator must
 * decide.
 *
 * @throws ApiError transaction_broadcast_failure, also for every repetition of the request.
 */
export async function requireKnownAccount(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  wallet: Pick<WalletRow, 'address' | 'created_at_ms'>,
  { chain, nonce }: Pick<BuiltTransaction, 'chain' | 'nonce'>,
): Promise<void> {
  const { em, nowMs } = context;
  const account = { caip2: chain.caip2, address: wallet.address };
  const [restore] = (await selectRestore(em, account)).rows;
  if (restore === undefined || restore.isAccepted !== null) return;
  const isNew = wallet.created_at_ms >= restore.noticedAtMs;
  const isKnown = nonce === undefined ? isNew : nonce <= (await knownNonces(em, account));
  if (isKnown) return acceptAccounts(em, [account], { nowMs, by: 'chain' });
  const why =
    nonce === undefined
      ? `\`${chain.caip2}\` does not tell whether the restored database lacks transactions of the wallet`
      : `the chain has transactions of the wallet that the restored database lacks: it is at nonce \`${nonce}\``;
  throw new ApiError(
    'transaction_broadcast_failure',
    `${why}; nothing was signed or sent, and an operator must accept the account`,
    { isFinal: true },
  );
}

/** Returns the account's next nonce according to the database. */
export async function knownNonces(em: OperationContext['em'], account: Account): Promise<number> {
  const [used] = (await selectHighestNonce(em, account)).rows;
  return used?.highest === null || used === undefined ? 0 : Number(used.highest) + 1;
}
