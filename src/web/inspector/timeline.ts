import type { SandboxEvent, SandboxTransaction } from '../../sandbox/generated/schemas.ts';

/** The facts about a transaction from its events. */
export interface KnownTransaction {
  readonly id: string;
  readonly walletId: string;
  readonly caip2: string;
  readonly hash: string;
  /** The history, oldest first. */
  readonly steps: readonly { readonly name: string; readonly atMs: number }[];
}

const PREFIX = 'transaction.';

/** Returns the transactions in events. The one with the newest event comes first. */
export function transactionsIn(events: readonly SandboxEvent[]): KnownTransaction[] {
  const found = new Map<string, KnownTransaction>();
  for (const { type, payload, created_at_ms: atMs } of events) {
    const { transaction_id: id } = payload;
    if (!type.startsWith(PREFIX) || typeof id !== 'string') continue;
    const steps = [...(found.get(id)?.steps ?? []), { name: type.slice(PREFIX.length), atMs }];
    // This makes the transaction of the newest event the last entry.
    found.delete(id);
    found.set(id, {
      id,
      walletId: textOf(payload.wallet_id),
      caip2: textOf(payload.caip2),
      hash: textOf(payload.transaction_hash),
      steps,
    });
  }
  return [...found.values()].reverse();
}

/**
 * Returns the transactions of a list with their events. The one with the newest event comes first. Events expire, but
 * transactions do not. Without events, the only step of a transaction is its status.
 */
export function knownTransactions(
  listed: readonly SandboxTransaction[],
  events: readonly SandboxEvent[],
): readonly KnownTransaction[] {
  const found = transactionsIn(events);
  const ids = new Set(found.map(({ id }) => id));
  const older = listed
    .filter(({ id }) => !ids.has(id))
    .map(({ id, wallet_id: walletId, caip2, transaction_hash: hash, status, created_at_ms: atMs }) => ({
      ...{ id, walletId, caip2, hash: hash ?? '' },
      steps: [{ name: status, atMs }],
    }));
  const newest = ({ steps }: KnownTransaction): number => steps.at(-1)?.atMs ?? 0;
  return [...found, ...older].sort((a, b) => newest(b) - newest(a));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The names of events that end a transaction without its effect. */
export function isFailure(name: string): boolean {
  return ['execution_reverted', 'failed', 'provider_error'].includes(name);
}
