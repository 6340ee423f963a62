import { raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ServerProcessEntity } from './server-process.entity.ts';

/** The process that claims work, and the current time. */
export interface Claimant {
  /** Identifies it among those that share the database. */
  readonly owner: string;
  readonly nowMs: number;
}

/** The longest time by which a claim postpones the next check of a row. */
const LONGEST_LEASE_MS = 60_000;

/**
 * The times of the next check that a claim may have set. Rows that a process has claimed once and that are due later
 * need no release.
 */
export function claimedUntil({ nowMs }: Claimant): { readonly $gt: number; readonly $lte: number } {
  // The clocks of processes may differ by as much again.
  return { $gt: nowMs, $lte: nowMs + 2 * LONGEST_LEASE_MS };
}

/** More than any installation has. */
const MAX_PROCESSES = 1_000;

/** Counts a beat of this process. Result: false if it is not registered, or the others have taken over its work. */
export async function countBeat(em: SqlEntityManager, owner: string): Promise<boolean> {
  return (
    (await em.nativeUpdate(ServerProcessEntity, { id: owner }, { beats: raw<number>('beats + 1') })) === 1
  );
}

/** Registers this process, so that the others watch it. */
export async function registerProcess(em: SqlEntityManager, { owner, nowMs }: Claimant): Promise<void> {
  await em.upsert(ServerProcessEntity, { id: owner, beats: 0, startedAtMs: nowMs, keyedLocks: 1 });
}

/** The beats of the other processes, by id. */
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
 * Removes a process. Release its claims in the same transaction.
 *
 * @param beats removes it only if it still has this number of beats.
 * @returns whether it was removed.
 */
export async function removeProcess(em: SqlEntityManager, id: string, beats?: number): Promise<boolean> {
  return (
    (await em.nativeDelete(ServerProcessEntity, { id, ...(beats === undefined ? {} : { beats }) })) === 1
  );
}
