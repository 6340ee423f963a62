import type { BlockchainTransactionStatus } from '../../../generated/schemas.ts';

export type TransactionStatus = BlockchainTransactionStatus;

/**
 * Which state may follow which.
 *
 * pending: signed and stored, not known to have reached the chain. broadcasted: a node accepted it. confirmed:
 * included and successful. finalized: no reorganization can remove it. execution_reverted: included, but only its fee
 * took effect. failed: it can never be included. replaced: another transaction used its nonce. provider_error: the
 * bundler of a sponsored transaction lost it.
 *
 * CHOICE: a transaction that was confirmed or reverted in a block dropped by a reorganization becomes `broadcasted`
 * again. Callers that need certainty wait for `finalized`.
 */
const followers: Readonly<Record<TransactionStatus, readonly TransactionStatus[]>> = {
  pending: ['broadcasted', 'failed', 'replaced', 'provider_error'],
  broadcasted: ['confirmed', 'execution_reverted', 'failed', 'replaced', 'provider_error'],
  confirmed: ['finalized', 'broadcasted', 'execution_reverted', 'failed', 'replaced'],
  execution_reverted: ['broadcasted', 'confirmed', 'failed', 'replaced'],
  finalized: [],
  failed: [],
  replaced: [],
  provider_error: [],
};

/** States of a transaction that no block includes yet. */
export const openStatuses = ['pending', 'broadcasted'] as const satisfies readonly TransactionStatus[];

/** States that free the nonce: the transaction was never included and never will be. */
export const releasedStatuses = ['failed', 'provider_error'] as const satisfies readonly TransactionStatus[];

/** States in which a transaction has no effect and never will. */
export const neverHasEffect: ReadonlySet<string | null> = new Set<TransactionStatus>([
  ...releasedStatuses,
  'replaced',
]);

/** Whether no other state can follow. */
export function isTerminal(status: TransactionStatus): boolean {
  return followers[status].length === 0;
}

/**
 * The states a transaction passes through from one state to another, including the last; each has its event. Empty
 * when nothing changes, undefined when the transition is not allowed.
 */
export function wayTo(
  from: TransactionStatus,
  to: TransactionStatus,
): readonly TransactionStatus[] | undefined {
  const ways = new Map<TransactionStatus, readonly TransactionStatus[]>([[from, []]]);
  // Breadth-first search: the map grows while it is iterated, so each state is first reached by the shortest path.
  for (const [status, way] of ways) {
    for (const next of followers[status]) if (!ways.has(next)) ways.set(next, [...way, next]);
  }
  return ways.get(to);
}
