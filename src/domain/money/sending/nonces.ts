import { recoverAuthority } from '../../../engine/signing/ethereum/recover-sender.ts';
import { checksumAddress } from '../../../engine/signing/ethereum/signer.ts';
import { invalidField } from '../../../errors.ts';
import type { EvmAuthorization, EvmChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockNames } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { type HeldAuthorization, REQUEST_LEASE_MS } from '../transactions/record-transaction.ts';
import {
  neverHasEffect,
  openStatuses,
  releasedStatuses,
  type TransactionStatus,
} from '../transactions/transaction.entity.ts';

// KYSELY: transactions are rows as they are stored, which jobs claim with `skip locked` and move by compare-and-set.

type NonceContext = Pick<OperationContext, 'em' | 'nowMs'>;

/** An account on one chain. */
export interface Account {
  readonly caip2: string;
  /**
   * The stored wallet address. Wallets of several apps may hold the same key, so the address identifies the account.
   */
  readonly address: string;
}

/** A nonce that a transaction of ours uses. */
interface HeldNonce {
  readonly nonce: number;
  /** Who sends the transaction; another account when it only carries an authorization of this one. */
  readonly sender: string;
  /** The sender's nonce of the transaction; null for a user operation. */
  readonly transactionNonce: number | null;
  readonly status: TransactionStatus;
  /** The delegate of the account, when an authorization uses the nonce; 0x hex, lower case. */
  readonly contract: string | null;
  readonly transactionId: string;
  /** Whether it may end without ever being sent: it waits for another one, or nothing has sent it in good time. */
  readonly mayStayUnsent: boolean;
}

/** The nonce of a new transaction. */
export interface FoundNonce {
  readonly nonce: number;
  /** The transaction of ours with the highest nonce below that may stay unsent; it has to reach the chain first. */
  readonly afterTransactionId: string | undefined;
}

/** How many nonces in a row a transaction uses, itself and its authorizations, if it is sent with `nonce`. */
type NonceReach = (nonce: number) => number;

/** How stale a chain's transaction count may be: another node may not have the latest block yet. */
const LAG_MS = 10 * 60_000;

/** Keeps other database transactions from choosing nonces of these accounts until this one ends. */
export async function lockNonces(
  { em }: Pick<NonceContext, 'em'>,
  caip2: string,
  addresses: readonly string[],
): Promise<void> {
  await lockNames(
    em,
    'nonces',
    addresses.map((address) => `nonce:${caip2}:${address}`),
  );
}

/**
 * The nonce of the account's next transaction: the lowest one from which neither the chain nor one of our transactions
 * uses any that the new transaction needs. A transaction that the chain refused frees its nonces, so that later ones
 * are not stuck behind the gap.
 *
 * INVARIANT: nothing is sent before a transaction with a lower nonce that waits for another one, or that nothing has
 * sent in good time. It could not be taken back, and if that one ends unsent, it would wait for the nonce for ever.
 *
 * CHOICE: transactions that were sent at the same time as one that the chain refuses, with later nonces, wait for the
 * account's next transaction. Nothing is sent just to use the nonce: no owner has authorized it, and it would cost a fee.
 *
 * Reserved until the database transaction ends if the account's nonces are locked.
 *
 * @param pendingCount the chain's transaction count, including its mempool.
 */
export async function findNonce(
  context: NonceContext,
  account: Account,
  pendingCount: bigint,
  reach: NonceReach = () => 1,
): Promise<FoundNonce> {
  const held = await heldNonces(context, account, Number(pendingCount));
  const taken = new Set(held.map(({ nonce }) => nonce));
  const isFree = (nonce: number): boolean => {
    for (let used = nonce; used < nonce + reach(nonce); used += 1) if (taken.has(used)) return false;
    return true;
  };
  let nonce = Number(pendingCount);
  while (!isFree(nonce)) nonce += 1;
  const [before] = held
    .filter((each) => each.nonce < nonce && each.mayStayUnsent)
    .sort((one, other) => other.nonce - one.nonce);
  return { nonce, afterTransactionId: before?.transactionId };
}

/**
 * The nonces from `first` on that transactions of ours use or have just used. One that waits for an earlier transaction
 * of its action, which never comes, is never sent: what is sent after its nonce would wait for it for ever.
 */
async function heldNonces(
  { em, nowMs }: NonceContext,
  { caip2, address }: Account,
  first: number,
): Promise<HeldNonce[]> {
  const database = em.getKysely<Tables>();
  const own = database
    .selectFrom('transactions as own')
    .leftJoin('transactions as earlier', 'earlier.id', 'own.after_transaction_id')
    .select(['own.id', 'own.nonce', 'own.sender', 'own.nonce as transactionNonce', 'own.status'])
    .select('own.created_at_ms as createdAtMs')
    .select(['own.after_transaction_id as earlierId', 'earlier.status as earlierStatus'])
    .select(({ val }) => val<string | null>(null).as('contract'))
    .where('own.caip2', '=', caip2)
    .where('own.sender', '=', address)
    .where('own.nonce', '>=', first)
    .where('own.status', 'not in', releasedStatuses)
    // The chain already counts transactions that settled long ago, unless it was reset, as local chains are.
    .where((where) =>
      where.or([
        where('own.next_check_at_ms', 'is not', null),
        where('own.updated_at_ms', '>', nowMs - LAG_MS),
      ]),
    )
    .orderBy('own.nonce');
  const authorized = database
    .selectFrom('transaction_authorizations as authorization')
    .innerJoin('transactions', 'transactions.id', 'authorization.transaction_id')
    .select([
      'transactions.id',
      'transactions.created_at_ms as createdAtMs',
      'transactions.after_transaction_id as earlierId',
      'authorization.nonce',
      'transactions.sender',
      'transactions.nonce as transactionNonce',
      'transactions.status',
      'authorization.contract',
    ])
    .where('authorization.caip2', '=', caip2)
    .where('authorization.authority', '=', address)
    .where('authorization.nonce', '>=', first)
    // A replaced transaction used its own nonce only.
    .where('transactions.status', 'not in', [...releasedStatuses, 'replaced'])
    .where((where) =>
      where.or([
        where('transactions.next_check_at_ms', 'is not', null),
        where('transactions.updated_at_ms', '>', nowMs - LAG_MS),
      ]),
    );
  const rows = [...withoutUnsent(await own.execute()), ...(await authorized.execute())];
  return rows.map(({ id, nonce, sender, transactionNonce, status, contract, earlierId, createdAtMs }) => ({
    nonce: Number(nonce),
    sender,
    transactionNonce,
    status: status as TransactionStatus,
    contract,
    transactionId: id,
    mayStayUnsent: status === 'pending' && (earlierId !== null || createdAtMs + REQUEST_LEASE_MS <= nowMs),
  }));
}

interface OwnRow {
  readonly id: string;
  readonly status: string;
  readonly earlierId: string | null;
  readonly earlierStatus: string | null;
}

/**
 * Leaves out what will never be sent.
 *
 * @param rows by their nonces: a transaction comes after the one for which it waits.
 */
function withoutUnsent<Row extends OwnRow>(rows: readonly Row[]): Row[] {
  const unsent = new Set<string | null>();
  return rows.filter(({ id, status, earlierId, earlierStatus }) => {
    const neverComes = unsent.has(earlierId) || (earlierStatus !== null && neverHasEffect.has(earlierStatus));
    const isUnsent = status === 'pending' && neverComes;
    if (isUnsent) unsent.add(id);
    return !isUnsent;
  });
}

// KYSELY: transactions are rows as they are stored, and here joined with others.

/** A transaction whose nonces are to be held. */
interface NonceDraft {
  readonly account: Account;
  /** The chain's transaction count; undefined when the caller specified the nonce. */
  readonly pendingCount: bigint | undefined;
  /** Specified by the caller. */
  readonly nonce?: number | undefined;
  /** Whether the nonce counts in its own lane, which Tempo allows. */
  readonly hasOwnLane?: boolean;
  /** The authorizations of the transaction, from `authorizationsOf`. */
  readonly authorizations: readonly HeldAuthorization[];
}

interface HeldNonces {
  /** The nonce of the transaction itself. */
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

/**
 * Values that a request reads from a chain may be older than the request by this much, because clocks differ and nodes
 * lag.
 */
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
