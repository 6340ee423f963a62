import type { SandboxChain, SandboxEvent } from '../../sandbox/generated/schemas.ts';
import { durationText } from './texts.ts';

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

/** Says after how many more blocks, and how much time of the sandbox's clock, a block is final. */
export function finalityText(
  block: number | null | undefined,
  chain: Pick<SandboxChain, 'block_number' | 'block_ms' | 'finality_blocks'> | undefined,
): string {
  if (block === null || block === undefined || chain === undefined) return 'Once its block is final.';
  const left = Math.max(0, chain.finality_blocks - (chain.block_number - block));
  const blocks = left === 1 ? '1 more block' : `${left} more blocks`;
  return `Once its block is final: ${blocks}, ${durationText(left * chain.block_ms)} by the sandbox's clock.`;
}
