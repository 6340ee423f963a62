import type { PolicyAction } from '../../../engine/policy/action.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import {
  aggregationsFor,
  type CountedAggregation,
  contributionsOf,
  type SpendingTotals,
} from './spending-totals.ts';

const MS_PER_SECOND = 1000;
/** The longest window that an aggregation can have. */
export const LONGEST_WINDOW_MS = 259_200 * MS_PER_SECOND;

/** Running totals of one wallet in a replay of past actions. */
export interface ReplayedTotals {
  /**
   * The totals that apply to an action at a given time. `count` adds the action's contribution; call it if the action
   * would be signed.
   */
  at(action: PolicyAction, nowMs: number): Promise<Pick<SpendingTotals, 'totalOf'> & { count(): void }>;
}

interface Counted {
  readonly atMs: number;
  readonly amount: bigint;
}

/** Starts totals at zero. They contain only actions that were passed to `count`, in chronological order. */
export function replayTotals(context: Pick<OperationContext, 'app' | 'em'>): ReplayedTotals {
  const groups = new Map<string, { sum: bigint; entries: Counted[] }>();
  const known = new Map<string, readonly CountedAggregation[]>();

  const sumOf = (key: string, sinceMs: number): bigint => {
    const group = groups.get(key);
    if (group === undefined) return 0n;
    const kept = group.entries.findIndex(({ atMs }) => atMs > sinceMs);
    const left = group.entries.splice(0, kept === -1 ? group.entries.length : kept);
    group.sum -= left.reduce((sum, { amount }) => sum + amount, 0n);
    return group.sum;
  };
  return {
    async at(action, nowMs) {
      const rows = known.get(action.method) ?? (await aggregationsFor(context, action.method));
      known.set(action.method, rows);
      const totals = new Map<string, bigint | 'unreadable'>();
      const added = new Map<string, bigint>();
      for (const row of rows) {
        const own = contributionsOf(row, action, nowMs);
        const keys = new Set<string>();
        for (const { groupKey, amount = 0n } of own) {
          const key = `${row.id}:${groupKey}`;
          keys.add(key);
          added.set(key, (added.get(key) ?? 0n) + amount);
        }
        const sinceMs = nowMs - row.window_seconds * MS_PER_SECOND;
        const each = [...keys].map((key) => sumOf(key, sinceMs) + (added.get(key) ?? 0n));
        const largest = each.reduce((most, total) => (total > most ? total : most), 0n);
        totals.set(row.id, own.some(({ amount }) => amount === undefined) ? 'unreadable' : largest);
      }
      return {
        totalOf: (id) => totals.get(id),
        count() {
          for (const [key, amount] of added) {
            if (amount === 0n) continue;
            const group = groups.get(key) ?? { sum: 0n, entries: [] };
            group.sum += amount;
            group.entries.push({ atMs: nowMs, amount });
            groups.set(key, group);
          }
        },
      };
    },
  };
}
