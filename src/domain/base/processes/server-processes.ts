import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { prepareQuery } from '../../prepared-query.ts';
import { AppMoveEntity, ServerProcessEntity } from './server-process.entity.ts';

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

/** The state of the last move of an app; see `AppMoveEntity`. */
export type MoveState = 'draining' | 'taken' | 'moved' | 'arrived' | 'aborted' | 'refused';

/** A change of a move, as the response to a heartbeat reports it. */
export interface SeenMove {
  readonly number: number;
  readonly state: MoveState;
  readonly appId: string;
  readonly moveId: string;
}

/** The moves of apps that a process knows, and the one for which it has stopped its work. */
export interface MovesOfProcess {
  /** The highest number of a move that the process knows. */
  readonly known: number;
  /** The number of the move for which the process has stopped its work on the app; 0 for none. */
  readonly drained: number;
}

/** The response to a heartbeat. */
export interface BeatResponse {
  /** The heartbeats of the other processes, by process id. */
  readonly others: ReadonlyMap<string, number>;
  /** The moves of apps that this process does not know, by increasing number. */
  readonly moves: readonly SeenMove[];
}

// KYSELY: one update returns the heartbeats of all other processes, by `returning` with a subquery.

const countOwn = prepareQuery<
  MovesOfProcess & { owner: string },
  { others: string | null; moves: string | null }
>((database, { owner, known, drained }) =>
  database
    .updateTable('server_processes')
    .set({ beats: sql<number>`beats + 1`, drained_move: drained })
    .where('id', '=', owner)
    .returning([
      sql<string | null>`(select string_agg(id || ' ' || beats, ',') from (
        select id, beats from server_processes where id <> ${owner} order by id limit ${sql.lit(MAX_PROCESSES)}
      ) as others)`.as('others'),
      sql<
        string | null
      >`(select string_agg(number || ' ' || state || ' ' || app_id || ' ' || move_id, ',') from (
        select number, state, app_id, move_id from app_moves where number > ${known} order by number
      ) as moves)`.as('moves'),
    ]),
);

/**
 * Increments the heartbeat of this process, and reads the heartbeats of the others and the new moves of apps. It must
 * be the only statement of its unit of work.
 *
 * @returns undefined if this process is not registered, or if other processes have taken over its work.
 */
export async function countBeat(
  em: SqlEntityManager,
  process: MovesOfProcess & { readonly owner: string },
): Promise<BeatResponse | undefined> {
  const { rows } = await countOwn(em, process, { isLast: true });
  const [row] = rows;
  if (row === undefined) return undefined;
  const others = new Map(
    listOf(row.others).map((each) => {
      const end = each.lastIndexOf(' ');
      return [each.slice(0, end), Number(each.slice(end))] as const;
    }),
  );
  return { others, moves: listOf(row.moves).map(readMove) };
}

const listOf = (joined: string | null): readonly string[] => joined?.split(',') ?? [];

function readMove(text: string): SeenMove {
  const [number, state, appId, moveId] = text.split(' ') as [string, MoveState, string, string];
  return { number: Number(number), state, appId, moveId };
}

/** Returns the apps that are leaving the database, or have left it and are not in their new cell yet. */
export async function findUnfinishedMoves(
  em: SqlEntityManager,
): Promise<readonly { readonly appId: string; readonly otherCell: string }[]> {
  return em.find(
    AppMoveEntity,
    { state: { $in: ['draining', 'taken'] } },
    { orderBy: { number: 'asc' }, disableIdentityMap: true },
  );
}

/** Registers this process, so that other processes watch its heartbeat. Returns what a heartbeat returns. */
export async function registerProcess(
  em: SqlEntityManager,
  { owner, nowMs, known }: Claimant & Pick<MovesOfProcess, 'known'>,
): Promise<BeatResponse> {
  await em.upsert(ServerProcessEntity, {
    ...{ id: owner, beats: 0, startedAtMs: nowMs, keyedLocks: 1, drainedMove: 0 },
  });
  const others = await em.find(
    ServerProcessEntity,
    { id: { $ne: owner } },
    { orderBy: { id: 'asc' }, limit: MAX_PROCESSES, disableIdentityMap: true },
  );
  const moves = await em.find(
    AppMoveEntity,
    { number: { $gt: known } },
    { orderBy: { number: 'asc' }, disableIdentityMap: true },
  );
  return {
    others: new Map(others.map(({ id, beats }) => [id, beats])),
    moves: moves.map(({ number, state, appId, moveId }) => ({
      ...{ number, appId, moveId },
      state: state as MoveState,
    })),
  };
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
