import { recoverAuthority } from '../../../engine/signing/ethereum/any-transaction.ts';
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

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

type NonceContext = Pick<OperationContext, 'em' | 'nowMs'>;

/** An account on one chain. */
export interface Account {
  readonly caip2: string;
  /**
   * The wallet's address as it is stored. Wallets of several apps may have the same key, so the address identifies the
   * account.
   */
  readonly address: string;
}

/** A nonce of an account that one of our transactions uses. */
interface HeldNonce {
  readonly nonce: number;
  /**
   * The sender of the transaction. It is a different account if the transaction only carries an authorization by this
   * account.
   */
  readonly sender: string;
  /** The nonce of the transaction itself; null for a user operation. */
  readonly transactionNonce: number | null;
  readonly status: TransactionStatus;
  /**
   * The smart contract to which an authorization with this nonce delegates the account, as lower-case 0x hex. Null if
   * the transaction itself has the nonce.
   */
  readonly contract: string | null;
  readonly transactionId: string;
  /**
   * Whether the transaction may end without being sent: it waits for another one, or its request did not send it in
   * time.
   */
  readonly mayStayUnsent: boolean;
}

export interface FoundNonce {
  readonly nonce: number;
  /**
   * The id of our transaction that must reach the chain first: of the transactions that may stay unsent and have a
   * lower nonce, the one with the highest nonce. Undefined if there is none.
   */
  readonly afterTransactionId: string | undefined;
}

/**
 * Returns the number of consecutive nonces that a transaction with this nonce uses, for itself and its authorizations.
 */
type NonceReach = (nonce: number) => number;

/** How old a chain's transaction count may be, because another node may lack the latest blocks. */
const LAG_MS = 10 * 60_000;

/** Locks the nonces of these accounts until the database transaction ends, so that no other request chooses one. */
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
 * Finds the nonce of the account's next transaction: the lowest nonce from which all nonces that the transaction needs
 * are free, both on the chain and among our transactions. A transaction that the chain refused frees its nonces, so
 * that later transactions are not stuck behind the gap. The nonce is reserved until the database transaction ends if
 * the account's nonces are locked.
 *
 * INVARIANT: nothing is sent before a transaction with a lower nonce that may stay unsent. A sent transaction cannot be
 * taken back. If the earlier one ended unsent, the later one would wait for that nonce forever.
 *
 * CHOICE: if the chain refuses a transaction while ones with later nonces are already sent, these wait for the
 * account's next transaction. Nothing is sent just to fill the gap: no owner has authorized it, and it would cost a
 * fee.
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
 * Reads the nonces from `first` that our transactions use or have just used. Leaves out a transaction that will never
 * be sent, because it waits for an earlier transaction of its action that has ended. Later transactions would otherwise
 * wait for its nonce forever.
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
    // Leave out transactions that settled long ago. Either the chain's count already includes them, or the chain was
    // reset, as local chains are, and their nonces are free again.
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
    // A replaced transaction was never included, so its authorizations used no nonces.
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
 * Leaves out transactions that will never be sent.
 *
 * @param rows sorted so that a transaction comes after the one for which it waits.
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

/** A transaction whose nonces are to be reserved. */
interface NonceDraft {
  readonly account: Account;
  /** The chain's transaction count; undefined when the caller specified the nonce. */
  readonly pendingCount: bigint | undefined;
  /** The nonce that the caller specified, if any. */
  readonly nonce?: number | undefined;
  /** Whether the nonce belongs to a separate nonce lane, which Tempo allows. */
  readonly hasOwnLane?: boolean;
  /** The result of `authorizationsOf`. */
  readonly authorizations: readonly HeldAuthorization[];
}

interface HeldNonces {
  /** The nonce of the transaction itself. */
  readonly nonce: number;
  /**
   * The id of the transaction with a lower nonce that must reach the chain first. Undefined if there is none, or if the
   * caller specified the nonce.
   */
  readonly afterTransactionId: string | undefined;
  /** The authorizations that will use a nonce if the transaction is included with `nonce`. */
  readonly authorizations: readonly HeldAuthorization[];
}

/** Returns the authorizations of a transaction that are valid on this chain, with the accounts that signed them. */
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
 * Reserves every nonce that a transaction uses, its own and those of its authorizations, until the database transaction
 * ends. After that, the stored transaction reserves them.
 *
 * @throws ApiError invalid_data when the caller specified a nonce or an authorization that would use the nonce of
 * another transaction that is not included yet. The chain would then never include that transaction.
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

// EIP-7702: the transaction uses its own nonce first. An authorization is skipped unless its nonce is the next one.
function reachOf({ address }: Account, authorizations: readonly HeldAuthorization[]): NonceReach {
  const own = authorizations.filter(({ authority }) => authority === address);
  return (nonce) => {
    let next = nonce + 1;
    for (const authorization of own) if (authorization.nonce === next) next += 1;
    return next - nonce;
  };
}

const isOpen = ({ status }: HeldNonce): boolean => openStatuses.some((open) => open === status);

/**
 * Refuses a nonce that the caller specified if the transaction or one of its authorizations would use a nonce of
 * another pending transaction. The transaction may replace the account's own transaction with the same nonce.
 *
 * @throws ApiError invalid_data
 */
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
    `expected a nonce other than \`${nonce}\`: a pending transaction uses the nonce \`${taken.nonce}\`` +
      (taken.contract === null ? '' : ' for an authorization'),
  );
}

/**
 * Refuses an authorization of another account if a pending transaction of that account uses its nonce.
 *
 * @throws ApiError invalid_data
 */
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

/** How much older than the request its chain data may be, because clocks differ and nodes lag. */
const STALE_READ_MS = 60_000;

/**
 * Finds the smart contract to which our latest relevant transaction delegates the account; undefined if there is none.
 * Transactions are relevant if they are not included yet, or were included after the request read the chain's state.
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
    // A reverted transaction delegates, too. A replaced one was never included, so it does not.
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
