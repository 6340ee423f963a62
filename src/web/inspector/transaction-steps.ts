import type { SandboxEvent } from '../../sandbox/generated/schemas.ts';

/** A step that an event reports: its name, such as `broadcasted`, and its time. */
export interface TransactionStep {
  readonly name: string;
  readonly atMs: number;
}

const PREFIX = 'transaction.';

/** Returns the steps of a transaction, oldest first. */
export function stepsOf(id: string, events: readonly SandboxEvent[]): readonly TransactionStep[] {
  return events
    .filter(({ type, payload }) => type.startsWith(PREFIX) && payload.transaction_id === id)
    .map(({ type, created_at_ms: atMs }) => ({ name: type.slice(PREFIX.length), atMs }));
}
