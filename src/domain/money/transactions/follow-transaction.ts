import type { AnyChain, ChainStatus } from '../../../ports/chains.ts';
import { type Finding, unchanged } from './advance-transaction.ts';
import type { DueTransaction } from './claim-transactions.ts';
import { addLook, type Doubt, isProven, readDoubt } from './doubt.ts';
import { GIVEN_UP_AFTER_MS } from './transaction-checks.ts';
import type { TransactionRow } from './transaction-row.ts';
import { neverHasEffect } from './transaction-state.ts';

/** Why a transaction ends unsent. */
export const EARLIER_NEVER_CAME =
  'an earlier transaction of the same wallet, which had to come first, never came into a block';

type Gone = ChainStatus & { readonly kind: 'gone' };
type Unknown = ChainStatus & { readonly kind: 'unknown' };

/**
 * Checks a transaction's status on its chain, and broadcasts its bytes again when the chain does not know them. Call
 * it outside any database transaction. One that was never sent waits for the earlier one that has to come first.
 * Rejects when the chain cannot be reached.
 *
 * INVARIANT: a transaction ends without effect only if its chain can never include it. What nodes say is not enough
 * while they disagree, before it is final, or before later blocks show it again.
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
    // If the block is gone, the chain may have lost the bytes with it. Sent again they cannot do harm.
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
  // A node may have the bytes from an earlier broadcast. A used nonce shows in the status once it is final.
  const mayHaveThem = row.status !== 'pending' || outcome.reason === 'stale' || outcome.isPartial === true;
  if (!mayHaveThem) return failed(row, outcome.message);
  const { look } = status;
  const dropped = look && addLook(readDoubt(row), 'dropped', { look, nowMs });
  const isGivenUp =
    nowMs - row.created_at_ms >= GIVEN_UP_AFTER_MS && (dropped === undefined || isProven(dropped));
  if (isGivenUp) return failed(row, outcome.message);
  // Not `unchanged`: a block that a reorganization removed no longer counts.
  const open = row.status === 'pending' ? 'pending' : 'broadcasted';
  return { status: open, isSettled: false, doubt: dropped };
}

/**
 * The state of a transaction whose nonce or blockhash the chain no longer accepts: it may have been included a moment
 * after the last check. Undefined if the chain does not know it, or cannot tell yet.
 */
export async function findStale(chain: AnyChain, row: TransactionRow): Promise<Finding | undefined> {
  const status = await statusOf(chain, row);
  if (status.kind === 'unknown') {
    return status.isExpired ? failed(row, 'it can no longer come into a block') : undefined;
  }
  return status.kind === 'gone' || status.kind === 'undecided' ? undefined : findingOf(status);
}

/**
 * CHOICE: a transaction that was in a block ends as replaced only if the transaction that used its nonce is known.
 * Nodes that have dropped old receipts say the same of one that was paid.
 */
function findingOfGone(row: TransactionRow, { as, look }: Gone, nowMs: number): Finding {
  const doubt = addLook(readDoubt(row), as, { look, nowMs });
  if (row.block_number !== null || !isProven(doubt)) return unchanged(row, doubt);
  if (as === 'expired') return failed(row, 'it can no longer come into a block');
  return { status: 'replaced', isSettled: true };
}

/** The doubt about the block of a transaction that nodes report outside of any block; undefined without one. */
function absenceOf(row: TransactionRow, status: ChainStatus, nowMs: number): Doubt | undefined {
  if (row.block_number === null) return undefined;
  if ((status.kind !== 'pending' && status.kind !== 'unknown') || status.look === undefined) return undefined;
  const { look } = status;
  const before = readDoubt(row);
  // A node that has not come to the block says nothing about it.
  if (look.at <= BigInt(row.block_number))
    return before ?? { as: 'reorganized', looks: 0, at: look.at, sinceMs: nowMs };
  return addLook(before, 'reorganized', { look, nowMs });
}

/** Where a transaction's bytes are broadcast: its chain, or the chain's bundler for a user operation. */
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

/** It will never be included; for a user operation, its bundler has failed. */
export function failed(row: TransactionRow, reason: string): Finding {
  const status = row.user_operation_hash === null ? 'failed' : 'provider_error';
  return { status, reason, isSettled: true };
}
