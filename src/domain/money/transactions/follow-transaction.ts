import type { AnyChain, ChainStatus, Inclusion } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { noteChange, recordEvent } from '../../base/events/events.ts';
import type { Tables } from '../../tables.ts';
import type { DueTransaction } from './claim-transactions.ts';
import { recordFunds } from './record-funds.ts';
import { recordGasCost } from './record-transaction.ts';
import { addObservation, type Doubt, isProven, readDoubt, writeDoubt } from './reorgs-and-replacements.ts';
import {
  isTerminal,
  neverHasEffect,
  TransactionEntity,
  type TransactionRow,
  type TransactionStatus,
  wayTo,
} from './transaction.entity.ts';

// CHOICE: a chain is polled for a transaction after a tenth of the transaction's age, at least after a second and at
// most after a minute.
const FIRST_CHECK_MS = 1000;
const RAREST_CHECK_MS = 60_000;
const PART_OF_AGE = 10;

/**
 * CHOICE: a transaction that is not included within this time counts as slow. On EVM chains, an event is then recorded
 * once.
 */
const SLOW_AFTER_MS = 5 * 60_000;

/**
 * CHOICE: a transaction that the chain has dropped and refuses is given up after this time. A transaction that the
 * chain still has is never given up, because it may be included at any time.
 */
const GIVEN_UP_AFTER_MS = 24 * 60 * 60_000;

/** Returns when the chain is polled next, in Unix ms; null when the state is final. */
function nextCheckAt(
  { created_at_ms: createdAtMs }: Pick<TransactionRow, 'created_at_ms'>,
  { status, isSettled }: { readonly status: TransactionStatus; readonly isSettled: boolean },
  nowMs: number,
): number | null {
  if (isSettled || isTerminal(status)) return null;
  const ageMs = Math.max(0, nowMs - createdAtMs);
  return nowMs + Math.min(RAREST_CHECK_MS, Math.max(FIRST_CHECK_MS, Math.floor(ageMs / PART_OF_AGE)));
}

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

type AdvanceContext = Pick<OperationContext, 'chains' | 'em' | 'ids' | 'notes' | 'nowMs' | 'prices'>;

/** A transaction's new state as its chain reports it. */
export interface Finding {
  readonly status: TransactionStatus;
  readonly inclusion?: Inclusion | undefined;
  /** Why the transaction failed or reverted, if it did. */
  readonly reason?: string | undefined;
  /** Whether this state is final. */
  readonly isSettled: boolean;
  /** Reports of nodes that contradict this state. If undefined, a stored doubt is removed. */
  readonly doubt?: Doubt | undefined;
}

/**
 * Returns the stored state as a finding, with the reports that contradict it. Storing it changes only these reports and
 * the next check.
 */
export function unchanged(row: TransactionRow, doubt?: Doubt): Finding {
  const { status, block_number: block, block_timestamp_seconds: at, fee_paid: fee } = row;
  const inclusion = { blockTimestampSeconds: at ?? 0, feePaid: BigInt(fee ?? '0') };
  return {
    status,
    isSettled: false,
    doubt,
    ...(row.failure_reason === null ? {} : { reason: row.failure_reason }),
    ...(block === null ? {} : { inclusion: { ...inclusion, blockNumber: BigInt(block) } }),
  };
}

/**
 * The event of each state. `pending` has none, because callers see it in the response. The API has no event for
 * `finalized`.
 */
const events: Readonly<Partial<Record<TransactionStatus, string>>> = {
  broadcasted: 'transaction.broadcasted',
  confirmed: 'transaction.confirmed',
  execution_reverted: 'transaction.execution_reverted',
  failed: 'transaction.failed',
  replaced: 'transaction.replaced',
  provider_error: 'transaction.provider_error',
};

/**
 * Stores a transaction's new state and records an event for every state that it passed through. Does nothing when
 * another process has updated the row in the meantime, or when the transition is not allowed. Returns whether the
 * state was stored.
 */
export async function advanceTransaction(
  context: AdvanceContext,
  row: TransactionRow,
  finding: Finding,
): Promise<boolean> {
  const { em, nowMs } = context;
  const way = wayTo(row.status, finding.status);
  if (way === undefined) return false;
  const { inclusion } = finding;
  const changed = {
    status: finding.status,
    block_number: inclusion === undefined ? null : Number(inclusion.blockNumber),
    block_timestamp_seconds: inclusion?.blockTimestampSeconds ?? null,
    transaction_hash: inclusion?.operation?.transactionHash ?? row.transaction_hash,
    fee_paid: inclusion === undefined ? null : String(inclusion.feePaid),
    failure_reason: finding.reason ?? null,
    doubt: writeDoubt(finding.doubt),
    updated_at_ms: way.length === 0 ? row.updated_at_ms : nowMs,
    next_check_at_ms: nextCheckAt(row, finding, nowMs),
  };
  const { numUpdatedRows } = await em
    .getKysely<Tables>()
    .updateTable('transactions')
    .set(changed)
    .where('id', '=', row.id)
    .where('status', '=', row.status)
    // The due time is also the lease. If another process has checked the transaction in the meantime, it has moved it.
    .where('next_check_at_ms', row.next_check_at_ms === null ? 'is' : '=', row.next_check_at_ms)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  for (const status of way) {
    const type = events[status];
    // The audit log must also show a new state that has no event.
    if (type === undefined)
      noteChange(context.notes, { appId: row.app_id, what: `transaction.${status}`, id: row.id });
    else
      await recordEvent(context, { appId: row.app_id, type, payload: eventPayload({ ...row, ...changed }) });
  }
  if (inclusion !== undefined && way.length > 0)
    await recordGasCost(context, { ...row, ...changed }, inclusion);
  if (way.includes('confirmed')) await recordFunds(context, { ...row, ...changed });
  return true;
}

/** Returns the payload that all `transaction.*` events have. */
function eventPayload(row: TransactionRow) {
  return {
    wallet_id: row.wallet_id,
    transaction_id: row.id,
    caip2: row.caip2,
    // Empty while a sponsored transaction has no hash, as in the response to the request.
    transaction_hash: row.transaction_hash ?? '',
    reference_id: row.reference_id,
  };
}

/** Why a transaction ends without being sent. */
export const EARLIER_NEVER_CAME =
  'an earlier transaction of the same wallet, which had to come first, never came into a block';

type Gone = ChainStatus & { readonly kind: 'gone' };
type Unknown = ChainStatus & { readonly kind: 'unknown' };

/**
 * Checks a transaction's status on its chain. Broadcasts its bytes again when the chain does not know them. A
 * transaction that was never sent waits for the earlier one that must come first. Call it outside any database
 * transaction. Rejects when the chain cannot be reached.
 *
 * INVARIANT: a transaction ends without effect only if its chain can never include it. Reports of nodes do not suffice
 * while nodes disagree, before the state is final, or before later blocks confirm it.
 */
export async function followTransaction(
  chain: AnyChain,
  row: DueTransaction,
  nowMs: number,
): Promise<Finding> {
  const status = await statusOf(chain, row);
  if (status.kind === 'undecided') return unchanged(row);
  if (status.kind === 'gone') return findingOfGone(row, status, nowMs);
  const absence = absenceOf(row, status, nowMs);
  if (absence !== undefined && !isProven(absence)) {
    // If the block was removed, the chain may have lost the bytes with it. Sending them again is harmless.
    if (status.kind === 'unknown') await carrierOf(chain, row).broadcast(row.signed_bytes);
    return unchanged(row, absence);
  }
  if (status.kind !== 'unknown') return findingOf(status);
  if (status.isExpired) return failed(row, 'it can no longer come into a block');
  if (row.status === 'pending') {
    if (row.earlierStatus === 'pending') return { status: 'pending', isSettled: false };
    if (neverHasEffect.has(row.earlierStatus)) return failed(row, EARLIER_NEVER_CAME);
  }
  return broadcastAgain(chain, row, { status, nowMs });
}

async function broadcastAgain(
  chain: AnyChain,
  row: DueTransaction,
  { status, nowMs }: { readonly status: Unknown; readonly nowMs: number },
): Promise<Finding> {
  const outcome = await carrierOf(chain, row).broadcast(row.signed_bytes);
  if (outcome.isAccepted) return { status: 'broadcasted', isSettled: false };
  if (outcome.reason === 'stale') {
    const found = await findStale(chain, row);
    if (found !== undefined) return found;
  }
  // A node may already have the bytes from an earlier broadcast. If another transaction has used the nonce, the status
  // shows which one when that transaction is final.
  const mayHaveThem = row.status !== 'pending' || outcome.reason === 'stale' || outcome.isPartial === true;
  if (!mayHaveThem) return failed(row, outcome.message);
  const { observed } = status;
  const dropped = observed && addObservation(readDoubt(row), 'dropped', { observed, nowMs });
  const isGivenUp =
    nowMs - row.created_at_ms >= GIVEN_UP_AFTER_MS && (dropped === undefined || isProven(dropped));
  if (isGivenUp) return failed(row, outcome.message);
  // The row becomes `broadcasted` again even if it was confirmed, because a block that a reorganization removed no
  // longer counts.
  const open = row.status === 'pending' ? 'pending' : 'broadcasted';
  return { status: open, isSettled: false, doubt: dropped };
}

/**
 * Returns the state of a transaction whose nonce or blockhash the chain no longer accepts. It may have been included
 * just after the last check. Returns undefined if the chain does not know it, or cannot tell yet.
 */
export async function findStale(chain: AnyChain, row: TransactionRow): Promise<Finding | undefined> {
  const status = await statusOf(chain, row);
  if (status.kind === 'unknown') {
    return status.isExpired ? failed(row, 'it can no longer come into a block') : undefined;
  }
  return status.kind === 'gone' || status.kind === 'undecided' ? undefined : findingOf(status);
}

/**
 * Returns the finding for a transaction that is no longer in the chain.
 *
 * CHOICE: a transaction that was in a block ends as replaced only if the transaction that used its nonce is known.
 * Nodes that have pruned old receipts report the same for a transaction that was included.
 */
function findingOfGone(row: TransactionRow, { as, observed }: Gone, nowMs: number): Finding {
  const doubt = addObservation(readDoubt(row), as, { observed, nowMs });
  if (row.block_number !== null || !isProven(doubt)) return unchanged(row, doubt);
  if (as === 'expired') return failed(row, 'it can no longer come into a block');
  return { status: 'replaced', isSettled: true };
}

/**
 * Returns the doubt about a transaction that is stored as included, but that nodes report outside of any block. Returns
 * undefined if there is no doubt.
 */
function absenceOf(row: TransactionRow, status: ChainStatus, nowMs: number): Doubt | undefined {
  if (row.block_number === null) return undefined;
  if ((status.kind !== 'pending' && status.kind !== 'unknown') || status.observed === undefined)
    return undefined;
  const { observed } = status;
  const before = readDoubt(row);
  // A node that has not reached the block yet proves nothing.
  if (observed.at <= BigInt(row.block_number))
    return before ?? { as: 'reorganized', observations: 0, at: observed.at, sinceMs: nowMs };
  return addObservation(before, 'reorganized', { observed, nowMs });
}

/** Returns the port that broadcasts a transaction's bytes: its chain, or for a user operation the chain's bundler. */
export function carrierOf(chain: AnyChain, row: TransactionRow): Pick<AnyChain, 'broadcast' | 'statusOf'> {
  if (row.user_operation_hash === null) return chain;
  const bundler = chain.kind === 'evm' ? chain.bundler : undefined;
  if (bundler === undefined) throw new Error(`no bundler is configured for ${chain.caip2}`);
  return bundler;
}

function statusOf(chain: AnyChain, row: TransactionRow): Promise<ChainStatus> {
  const hash = row.user_operation_hash ?? row.transaction_hash ?? '';
  return carrierOf(chain, row).statusOf(hash, row.signed_bytes);
}

function findingOf(status: Exclude<ChainStatus, Unknown | Gone | { kind: 'undecided' }>): Finding {
  switch (status.kind) {
    case 'pending':
      return { status: 'broadcasted', isSettled: false };
    case 'included':
      return {
        status: status.isFinal ? 'finalized' : 'confirmed',
        inclusion: status,
        isSettled: status.isFinal,
      };
    case 'reverted':
      return {
        status: 'execution_reverted',
        inclusion: status,
        reason: status.reason,
        isSettled: status.isFinal,
      };
    case 'replaced':
      return {
        status: 'replaced',
        ...(status.byHash === undefined ? {} : { reason: `replaced by ${status.byHash}` }),
        isSettled: true,
      };
  }
}

/**
 * Returns the finding for a transaction that will never be included, or for a user operation whose bundler has failed.
 */
export function failed(row: TransactionRow, reason: string): Finding {
  const status = row.user_operation_hash === null ? 'failed' : 'provider_error';
  return { status, reason, isSettled: true };
}

const TEMPO_TYPE = 118;

/**
 * Records once that an EVM transaction has been waiting for inclusion for a long time. A Tempo batch has no such event,
 * because the event cannot describe it.
 */
export async function recordStillPending(
  context: AdvanceContext,
  row: TransactionRow,
  { status }: Pick<Finding, 'status'>,
): Promise<void> {
  const isSlow = status === 'broadcasted' && context.nowMs - row.created_at_ms >= SLOW_AFTER_MS;
  if (!isSlow || row.is_slow_told === 1 || row.transaction_request === null) return;
  const request = JSON.parse(row.transaction_request) as { readonly type?: number };
  if (request.type === TEMPO_TYPE) return;
  await recordEvent(context, {
    appId: row.app_id,
    type: 'transaction.still_pending',
    payload: {
      ...eventPayload(row),
      transaction_request: request,
    },
  });
  await context.em.nativeUpdate(TransactionEntity, { id: row.id }, { isSlowTold: 1 });
}
