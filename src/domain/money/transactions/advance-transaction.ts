import type { OperationContext } from '../../../operation-context.ts';
import type { Inclusion } from '../../../ports/chains.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { noteChange } from '../../base/events/stored-effects.ts';
import type { Tables } from '../../tables.ts';
import { type Doubt, writeDoubt } from './doubt.ts';
import { recordFunds } from './record-funds.ts';
import { recordGasCost } from './record-gas-cost.ts';
import { nextCheckAt } from './transaction-checks.ts';
import type { TransactionRow } from './transaction-row.ts';
import { type TransactionStatus, wayTo } from './transaction-state.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

export type AdvanceContext = Pick<OperationContext, 'chains' | 'em' | 'ids' | 'nowMs' | 'prices'>;

/** A transaction's new state, as observed on its chain. */
export interface Finding {
  readonly status: TransactionStatus;
  readonly inclusion?: Inclusion | undefined;
  /** Why it failed or reverted. */
  readonly reason?: string | undefined;
  /** Whether this state is final. */
  readonly isSettled: boolean;
  /** What nodes say against this state; undefined ends an earlier doubt. */
  readonly doubt?: Doubt | undefined;
}

/** The stored state, with what nodes say against it; only the next check is scheduled. */
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
 * The event of each state. `pending` has none, because callers get it as the response; the contract defines none for
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
 * Stores a transaction's new state and records an event for every state it passed through. Does nothing when another
 * process has updated the row since it was read, or when the transition is not allowed.
 *
 * Result: whether the state was stored.
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
    // This time is also the lease: a process that checked the chain has moved it.
    .where('next_check_at_ms', row.next_check_at_ms === null ? 'is' : '=', row.next_check_at_ms)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  for (const status of way) {
    const type = events[status];
    // A state without an event is a change for the audit log, too.
    if (type === undefined) noteChange(em, { appId: row.app_id, what: `transaction.${status}`, id: row.id });
    else
      await recordEvent(context, { appId: row.app_id, type, payload: eventPayload({ ...row, ...changed }) });
  }
  if (inclusion !== undefined && way.length > 0)
    await recordGasCost(context, { ...row, ...changed }, inclusion);
  if (way.includes('confirmed')) await recordFunds(context, { ...row, ...changed });
  return true;
}

/** The payload of every `transaction.*` event. */
export function eventPayload(row: TransactionRow) {
  return {
    wallet_id: row.wallet_id,
    transaction_id: row.id,
    caip2: row.caip2,
    // Empty while a sponsored transaction has no hash, as in the response that sent it.
    transaction_hash: row.transaction_hash ?? '',
    reference_id: row.reference_id,
  };
}
