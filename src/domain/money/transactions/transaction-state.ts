import type { BlockchainTransactionStatus } from '../../../generated/schemas.ts';

export type TransactionStatus = BlockchainTransactionStatus;

/**
 * Which state may follow which.
 *
 * pending: signed and kept, not known to be with the chain. broadcasted: a node took it. confirmed: in a block, it did
 * what it should. finalized: no reorganization takes it back. execution_reverted: in a block, only its fee was taken.
 * failed: it can never come into a block. replaced: another one took its nonce. provider_error: the bundler of a
 * sponsored one lost it.
 *
 * CHOICE: what was confirmed or reverted in a block that a reorganization drops is `broadcasted` again. Callers who take
 * `confirmed` for settled accept that; whoever must not waits for `finalized`.
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

/** Its nonce may be taken by another transaction: this one never was and never will be in a block. */
export const releasedStatuses = ['failed', 'provider_error'] as const satisfies readonly TransactionStatus[];

/** Nothing can follow. */
export function isTerminal(status: TransactionStatus): boolean {
  return followers[status].length === 0;
}

/**
 * The states that a transaction goes through from one to another, the last included; each is told by its event.
 * Empty when nothing changes, undefined when there is no way.
 */
export function wayTo(
  from: TransactionStatus,
  to: TransactionStatus,
): readonly TransactionStatus[] | undefined {
  const ways = new Map<TransactionStatus, readonly TransactionStatus[]>([[from, []]]);
  // The shortest way: a state is reached first by as few steps as there are, and the map keeps growing as it is read.
  for (const [status, way] of ways) {
    for (const next of followers[status]) if (!ways.has(next)) ways.set(next, [...way, next]);
  }
  return ways.get(to);
}
