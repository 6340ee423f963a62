import { invalidField } from '../../../errors.ts';
import type { EvmAuthorization, EvmChain } from '../../../ports/chains.ts';
import { checksumAddress } from '../../../signing/ethereum/address.ts';
import { recoverAuthority } from '../../../signing/ethereum/recover-sender.ts';
import type { Tables } from '../../tables.ts';
import type { HeldAuthorization } from '../transactions/record-transaction.ts';
import { openStatuses, releasedStatuses } from '../transactions/transaction-state.ts';
import {
  type Account,
  findNonce,
  type HeldNonce,
  heldNonces,
  lockNonces,
  type NonceContext,
  type NonceReach,
} from './find-nonce.ts';

// HOT: reads `transactions`, which jobs of several processes claim; no bench case covers it.

/** A transaction whose nonces are to be held. */
interface NonceDraft {
  readonly account: Account;
  /** The chain's transaction count; undefined when the caller specified the nonce. */
  readonly pendingCount: bigint | undefined;
  /** Specified by the caller. */
  readonly nonce?: number | undefined;
  /** Whether the nonce counts in a lane of its own, as those of Tempo may. */
  readonly hasOwnLane?: boolean;
  /** Those of the transaction, from `authorizationsOf`. */
  readonly authorizations: readonly HeldAuthorization[];
}

export interface HeldNonces {
  /** Of the transaction itself. */
  readonly nonce: number;
  /** The transaction with a lower nonce that has to reach the chain first; never for a nonce of the caller's choice. */
  readonly afterTransactionId: string | undefined;
  /** The authorizations that use a nonce when the transaction is included with its own. */
  readonly authorizations: readonly HeldAuthorization[];
}

/** The authorizations of a transaction that have an effect on this chain, with the accounts that signed them. */
export function authorizationsOf(
  list: readonly EvmAuthorization[],
  { chainId }: Pick<EvmChain, 'chainId'>,
): HeldAuthorization[] {
  return list.flatMap((authorization) => {
    const isHere = authorization.chainId === 0 || BigInt(authorization.chainId) === chainId;
    const authority = isHere ? recoverAuthority(authorization) : undefined;
    if (authority === undefined || authorization.nonce > BigInt(Number.MAX_SAFE_INTEGER)) return [];
    return {
      authority: checksumAddress(authority.slice(2)),
      nonce: Number(authorization.nonce),
      contract: authorization.contract.toLowerCase(),
    };
  });
}

/**
 * Holds every nonce that a transaction uses: its own, and those of its authorizations, until the database transaction
 * ends; the stored transaction holds them afterwards.
 *
 * @throws ApiError invalid_data when the caller specified a nonce, or an authorization, that would use the nonce of
 * another transaction which has not been included yet: the chain would never include that one.
 */
export async function holdNonces(context: NonceContext, draft: NonceDraft): Promise<HeldNonces> {
  const { account, authorizations } = draft;
  const others = authorizations.filter(({ authority }) => authority !== account.address);
  await lockNonces(context, account.caip2, [account.address, ...others.map(({ authority }) => authority)]);
  const reach = reachOf(account, authorizations);
  const { nonce, afterTransactionId } =
    draft.nonce === undefined
      ? await findNonce(context, account, draft.pendingCount ?? 0n, reach)
      : { nonce: draft.nonce, afterTransactionId: undefined };
  if (draft.nonce !== undefined && draft.hasOwnLane !== true) {
    await requireFree(context, account, { nonce, used: reach(nonce) });
  }
  for (const other of others) await requireUnused(context, { account, nonce }, other);
  const last = nonce + reach(nonce) - 1;
  const effective = ({ authority, nonce: used }: HeldAuthorization): boolean =>
    authority !== account.address || (used > nonce && used <= last);
  return { nonce, afterTransactionId, authorizations: authorizations.filter(effective) };
}

// EIP-7702: the transaction uses its own nonce first; an authorization is skipped unless its nonce is the next one.
function reachOf({ address }: Account, authorizations: readonly HeldAuthorization[]): NonceReach {
  const own = authorizations.filter(({ authority }) => authority === address);
  return (nonce) => {
    let next = nonce + 1;
    for (const authorization of own) if (authorization.nonce === next) next += 1;
    return next - nonce;
  };
}

const isOpen = ({ status }: HeldNonce): boolean => openStatuses.some((open) => open === status);

/** A specified nonce may replace a transaction, but not use up the nonce of one that it does not replace. */
async function requireFree(
  context: NonceContext,
  account: Account,
  { nonce, used }: { readonly nonce: number; readonly used: number },
): Promise<void> {
  const isReplaced = ({ sender, transactionNonce }: HeldNonce): boolean =>
    sender === account.address && transactionNonce === nonce;
  const held = await heldNonces(context, account, nonce);
  const taken = held.find((each) => each.nonce < nonce + used && isOpen(each) && !isReplaced(each));
  if (taken === undefined) return;
  throw invalidField(
    '/params/transaction/nonce',
    `expected another nonce than \`${nonce}\`: a pending transaction uses the nonce \`${taken.nonce}\`` +
      (taken.contract === null ? '' : ' for an authorization'),
  );
}

/** An authorization of another account must not use up the nonce of a transaction which that account has sent. */
async function requireUnused(
  context: NonceContext,
  by: { readonly account: Account; readonly nonce: number },
  { authority, nonce }: HeldAuthorization,
): Promise<void> {
  const held = await heldNonces(context, { caip2: by.account.caip2, address: authority }, nonce);
  const isTaken = held.some((each) => each.nonce === nonce && each.sender === authority && isOpen(each));
  if (!isTaken) return;
  throw invalidField(
    '/params/transaction/authorization_list',
    `expected a nonce of \`${authority}\` that none of its pending transactions uses, got \`${nonce}\``,
  );
}

/** What a request reads from a chain may be older than the request by this much: clocks differ, and nodes lag. */
const STALE_READ_MS = 60_000;

/**
 * The contract that our transactions delegate the account to, the last one of several: of those that are not included
 * yet, and of those that were included after the request has planned by the chain's state.
 */
export async function laterDelegation(
  { em, nowMs }: NonceContext,
  { caip2, address }: Account,
): Promise<string | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('transaction_authorizations as authorization')
    .innerJoin('transactions', 'transactions.id', 'authorization.transaction_id')
    .select('authorization.contract')
    .where('authorization.caip2', '=', caip2)
    .where('authorization.authority', '=', address)
    // A reverted transaction delegates too; a replaced one used its own nonce only.
    .where('transactions.status', 'not in', [...releasedStatuses, 'replaced'])
    .where((where) =>
      where.or([
        where('transactions.status', 'in', openStatuses),
        where('transactions.updated_at_ms', '>', nowMs - STALE_READ_MS),
      ]),
    )
    .orderBy('authorization.nonce', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.contract;
}
