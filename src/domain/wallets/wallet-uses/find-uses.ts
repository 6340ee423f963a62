import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Selectable, sql } from 'kysely';
import type { PolicyDecision } from '../../../engine/policy/evaluate.ts';
import { notFound } from '../../../errors.ts';
import { type ExpiringTable, graceOf } from '../../../storage/schema/partitions.ts';
import type { Tables } from '../../tables.ts';
import { dropOldVolumes } from './use-log.ts';

// KYSELY: reads and deletes uses page by page, up to a thousand at a time.

type UseRow = Selectable<Tables['wallet_uses']>;

export interface RecordedUse {
  readonly sequence: number;
  readonly appId: string;
  readonly walletId: string;
  readonly operation: string;
  readonly method: string;
  readonly requestId: string;
  readonly judgedAtMs: number;
  readonly decision: 'allowed' | 'denied';
  readonly policyIds: readonly string[];
  /**
   * The body of the request. Undefined when it was not stored, because it or all records of that day were too large.
   */
  readonly request: object | undefined;
  /** The id of the trace of a denial; null for allowed uses. */
  readonly traceId: string | null;
  /**
   * The decisions of a denial with their traces. Undefined for allowed uses, and when they were too large to be stored.
   */
  readonly trace: readonly PolicyDecision[] | undefined;
}

const columns = [
  'sequence',
  'app_id',
  'wallet_id',
  'operation',
  'method',
  'request_id',
  'judged_at_ms',
  'decision',
  'policy_ids',
  'request',
  'trace_id',
  'trace',
] as const satisfies readonly (keyof UseRow)[];

/**
 * CHOICE: the time for which uses are kept. The specification gives none. A month of requests is enough to evaluate a
 * policy change.
 */
const LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;

/** The retention of uses: each is kept until its lifetime ends. */
export const expiringUses: ExpiringTable = {
  ...{ table: 'wallet_uses', key: 'sequence', time: 'judged_at_ms', keptMs: LIFETIME_MS },
  isNeeded: ({ name }, beforeMs) => sql<boolean>`
    exists (select from ${sql.table(name)} where judged_at_ms > ${beforeMs})
  `,
};

/** The maximum number of rows per statement. */
export const USES_AT_ONCE = 1000;

/**
 * Finds a denied use by the id of its trace or of its request. A request ends at its first denial.
 *
 * @param appId limits the search to one app.
 * @throws ApiError not_found
 */
export async function findDenial(
  em: SqlEntityManager,
  id: string,
  appId?: string,
): Promise<RecordedUse & { readonly traceId: string }> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('wallet_uses')
    .select(columns)
    .where('trace_id', 'is not', null)
    .where(({ eb, or }) => or([eb('trace_id', '=', id), eb('request_id', '=', id)]))
    .$if(appId !== undefined, (query) => query.where('app_id', '=', appId!))
    .executeTakeFirst();
  if (row?.trace_id == null) throw notFound('Trace');
  return { ...fromRow(row), traceId: row.trace_id };
}

/** Yields the uses of a wallet since a given time, oldest first, and reads them page by page. */
export async function* usesOfWallet(
  em: SqlEntityManager,
  walletId: string,
  sinceMs: number,
): AsyncGenerator<RecordedUse> {
  for (let after = -1; ; ) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_uses')
      .select(columns)
      .where('wallet_id', '=', walletId)
      .where('sequence', '>', after)
      .where('judged_at_ms', '>=', sinceMs)
      .orderBy('sequence')
      .limit(USES_AT_ONCE)
      .execute();
    for (const row of rows) yield fromRow(row);
    const last = rows.at(-1);
    if (last === undefined || rows.length < USES_AT_ONCE) return;
    after = last.sequence;
  }
}

/**
 * Deletes the oldest expired uses, at most `USES_AT_ONCE`, and returns how many. On PostgreSQL, a use is
 * deleted a week after its expiry; by then its partition has normally been dropped.
 *
 * NOTE: uses are deleted in their order, so that no index on time is needed. If a clock was ahead and then set back, a
 * use with a late time delays the deletion of the uses behind it.
 */
export async function dropExpiredUses(em: SqlEntityManager, nowMs: number): Promise<number> {
  await dropOldVolumes(em, nowMs);
  const database = em.getKysely<Tables>();
  const oldest = await database
    .selectFrom('wallet_uses')
    .select(['sequence', 'judged_at_ms'])
    .orderBy('sequence')
    .limit(USES_AT_ONCE)
    .execute();
  const beforeMs = nowMs - LIFETIME_MS - graceOf(em);
  const young = oldest.findIndex(({ judged_at_ms: atMs }) => atMs > beforeMs);
  const last = oldest.at(young === -1 ? oldest.length - 1 : young - 1);
  if (young === 0 || last === undefined) return 0;
  const { numDeletedRows } = await database
    .deleteFrom('wallet_uses')
    .where('sequence', '<=', last.sequence)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function fromRow(row: Pick<UseRow, (typeof columns)[number]>): RecordedUse {
  return {
    sequence: row.sequence,
    appId: row.app_id,
    walletId: row.wallet_id,
    operation: row.operation,
    method: row.method,
    requestId: row.request_id,
    judgedAtMs: row.judged_at_ms,
    decision: row.decision as RecordedUse['decision'],
    policyIds: JSON.parse(row.policy_ids) as string[],
    request: row.request === null ? undefined : (JSON.parse(row.request) as object),
    traceId: row.trace_id,
    trace: row.trace === null ? undefined : (JSON.parse(row.trace) as PolicyDecision[]),
  };
}
