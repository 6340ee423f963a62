import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { prepareQuery } from '../../prepared-query.ts';
import { ServerProcessEntity } from './server-process.entity.ts';

/** A process that claims work, at a point in time. */
export interface Claimant {
  /** Identifies the process among those that share the database. */
  readonly owner: string;
  readonly nowMs: number;
}

/** The maximum time by which a claim postpones the next check of a row. */
const LONGEST_LEASE_MS = 60_000;

/**
 * Returns a filter for the due times that an unexpired claim may have set. A row with a later due time got it after the
 * claim, so the claim needs no release.
 */
export function claimedUntil({ nowMs }: Claimant): { readonly $gt: number; readonly $lte: number } {
  // The clocks of two processes may differ by another `LONGEST_LEASE_MS`.
  return { $gt: nowMs, $lte: nowMs + 2 * LONGEST_LEASE_MS };
}

/** A bound for the query; no installation has that many processes. */
const MAX_PROCESSES = 1_000;

// KYSELY: one update returns the heartbeats of all other processes, by `returning` with a subquery.

const countOwn = prepareQuery<{ owner: string }, { others: string | null }>((database, { owner }) =>
  database
    .updateTable('server_processes')
    .set({ beats: sql<number>`beats + 1` })
    .where('id', '=', owner)
    .returning(
      sql<string | null>`(select string_agg(id || ' ' || beats, ',') from (
        select id, beats from server_processes where id <> ${owner} order by id limit ${sql.lit(MAX_PROCESSES)}
      ) as others)`.as('others'),
    ),
);

/**
 * Increments the heartbeat of this process. It must be the only statement of its unit of work.
 *
 * @returns the heartbeats of the other processes, by process id; undefined if this process is not registered, or if
 * other processes have taken over its work.
 */
export async function countBeat(
  em: SqlEntityManager,
  owner: string,
): Promise<ReadonlyMap<string, number> | undefined> {
  const { rows } = await countOwn(em, { owner }, { isLast: true });
  const [row] = rows;
  if (row === undefined) return undefined;
  const others = row.others?.split(',') ?? [];
  return new Map(
    others.map((each) => {
      const end = each.lastIndexOf(' ');
      return [each.slice(0, end), Number(each.slice(end))] as const;
    }),
  );
}

/** Registers this process, so that other processes watch its heartbeat. */
export async function registerProcess(em: SqlEntityManager, { owner, nowMs }: Claimant): Promise<void> {
  await em.upsert(ServerProcessEntity, { id: owner, beats: 0, startedAtMs: nowMs, keyedLocks: 1 });
}

/** Returns the heartbeats of the other processes, by process id. */
export async function beatsOfOthers(
  em: SqlEntityManager,
  owner: string,
): Promise<ReadonlyMap<string, number>> {
  const others = await em.find(
    ServerProcessEntity,
    { id: { $ne: owner } },
    { orderBy: { id: 'asc' }, limit: MAX_PROCESSES, disableIdentityMap: true },
  );
  return new Map(others.map(({ id, beats }) => [id, beats]));
}

/**
 * Removes a process. The caller releases its claims in the same transaction.
 *
 * @param beats if given, the process is removed only if its heartbeat still has this value.
 * @returns whether the process was removed.
 */
export async function removeProcess(em: SqlEntityManager, id: string, beats?: number): Promise<boolean> {
  return (
    (await em.nativeDelete(ServerProcessEntity, { id, ...(beats === undefined ? {} : { beats }) })) === 1
  );
}
