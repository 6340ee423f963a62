import type { FilterQuery } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { OperatorCaller } from './operator-caller.ts';
import { OperatorRecordEntity, type StoredOperatorRecord } from './operator-record.entity.ts';

/** What recording needs. */
export interface RecordingContext {
  readonly em: SqlEntityManager;
  readonly nowMs: number;
  readonly by: OperatorCaller;
}

/**
 * CHOICE: the newest 10,000 changes of an app are kept, and of reads and refusals the newest 1,000 of each operator, so
 * that reading does not push changes out. The server's log has all calls on the admin port.
 */
const recordLimits = { changesOfApp: 10_000, othersOfOperator: 1_000 };

/** The longest stored target. Ids are shorter; callers can send longer texts in their place. */
const MAX_TARGET = 100;

/** Records a change in its transaction. `targets` are ids and roles, never secrets. */
export async function recordChange(
  context: RecordingContext,
  change: { readonly appId: string; readonly action: string; readonly targets: Record<string, string> },
  limits = recordLimits,
): Promise<void> {
  await store(context, { ...change, kind: 'change', result: 'done' });
  await dropBefore(context.em, { appId: change.appId, kind: 'change' }, limits.changesOfApp);
}

/** Records that an operator read something or was refused. `result` is `done` or an error code. */
export async function recordCall(
  context: RecordingContext,
  call: { readonly action: string; readonly targets: Record<string, string>; readonly result: string },
  limits = recordLimits,
): Promise<void> {
  const { operator } = context.by;
  if (operator === undefined) return;
  await store(context, { ...call, appId: operator.appId, kind: 'call' });
  await dropBefore(context.em, { operatorId: operator.id, kind: 'call' }, limits.othersOfOperator);
}

type Entry = Pick<StoredOperatorRecord, 'appId' | 'action' | 'kind' | 'result'> & {
  readonly targets: Readonly<Record<string, string>>;
};

async function store({ em, nowMs, by }: RecordingContext, { targets, ...entry }: Entry): Promise<void> {
  // Paths can contain control characters, which would reach the terminal of the reader.
  const short = Object.entries(targets).map(([name, value]) => [
    name,
    value.slice(0, MAX_TARGET).replaceAll(/\p{Cc}/gu, '?'),
  ]);
  em.create(OperatorRecordEntity, {
    ...entry,
    operatorId: by.operator?.id ?? null,
    operatorName: by.operator?.name ?? null,
    operatorRole: by.operator?.role ?? null,
    origin: by.origin,
    targets: Object.fromEntries(short),
    atMs: nowMs,
  });
  await em.flush();
}

async function dropBefore(
  em: SqlEntityManager,
  where: FilterQuery<StoredOperatorRecord>,
  kept: number,
): Promise<void> {
  const [newestDropped] = await em.find(OperatorRecordEntity, where, {
    orderBy: { sequence: 'desc' },
    offset: kept,
    limit: 1,
  });
  if (newestDropped === undefined) return;
  await em.nativeDelete(OperatorRecordEntity, {
    $and: [where, { sequence: { $lte: newestDropped.sequence } }],
  });
}
