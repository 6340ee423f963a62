import type { AnyChain, ChainStatus } from '../../../ports/chains.ts';
import type { Finding } from './advance-transaction.ts';
import type { DueTransaction } from './claim-transactions.ts';
import { GIVEN_UP_AFTER_MS } from './transaction-checks.ts';
import type { TransactionRow } from './transaction-row.ts';
import { neverHasEffect } from './transaction-state.ts';

/** Why a transaction ends unsent. */
export const EARLIER_NEVER_CAME =
  'an earlier transaction of the same wallet, which had to come first, never came into a block';

/**
 * Checks a transaction's status on its chain, and broadcasts its bytes again when the chain does not know them. Call
 * it outside any database transaction. One that was never sent waits for the earlier one that has to come first.
 * Rejects when the chain cannot be reached.
 */
export async function followTransaction(
  chain: AnyChain,
  row: DueTransaction,
  nowMs: number,
): Promise<Finding> {
  const status = await statusOf(chain, row);
  if (status.kind !== 'unknown') return findingOf(status);
  if (status.isExpired) return failed(row, 'it can no longer come into a block');
  if (row.status === 'pending') {
    if (row.earlierStatus === 'pending') return { status: 'pending', isSettled: false };
    if (neverHasEffect.has(row.earlierStatus)) return failed(row, EARLIER_NEVER_CAME);
  }
  const outcome = await carrierOf(chain, row).broadcast(row.signed_bytes);
  if (outcome.isAccepted) return { status: 'broadcasted', isSettled: false };
  if (outcome.reason === 'stale') {
    const found = await findStale(chain, row, outcome.message);
    if (found.status !== 'failed' && found.status !== 'provider_error') return found;
  }
  // A node accepted it before, so the refusal may be temporary: it is broadcast again until it is given up.
  const mayStillCome = row.status !== 'pending' && nowMs - row.created_at_ms < GIVEN_UP_AFTER_MS;
  return mayStillCome ? { status: 'broadcasted', isSettled: false } : failed(row, outcome.message);
}

/**
 * The state of a transaction whose nonce or blockhash the chain no longer accepts: it may have been included a moment
 * after the last check.
 */
export async function findStale(chain: AnyChain, row: TransactionRow, message: string): Promise<Finding> {
  const status = await statusOf(chain, row);
  return status.kind === 'unknown' ? failed(row, message) : findingOf(status);
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

function findingOf(status: Exclude<ChainStatus, { kind: 'unknown' }>): Finding {
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
