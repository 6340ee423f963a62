import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { ApiError } from '../../../errors.ts';
import type { Ids } from '../../../ports/runtime.ts';
import { lockName } from '../../../storage/locks.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { AcceptedAccountEntity, DatabaseIdentityEntity, RestoreEntity } from './restore.entity.ts';

// KYSELY: one statement over tables of several nouns.

/**
 * Why the database counts as restored:
 * - `copied`: it is in another cluster, or was loaded from a dump.
 * - `recovered`: it has a new timeline, and no server can tell that nothing was lost.
 * - `lost_changes`: changes that a server acknowledged are missing.
 * - `marked`: an operator or `custos restore` declared it.
 */
export type RestoreCause = 'copied' | 'recovered' | 'lost_changes' | 'marked';

export interface Restore {
  readonly id: string;
  readonly cause: string;
  readonly noticedAtMs: number;
  readonly newestRecordAtMs: number | null;
  readonly releasedAtMs: number | null;
  readonly areAllAccepted: number;
}

/** An account on one chain, whose transactions are refused after a restore until it is accepted. */
export interface RestoredAccount {
  readonly caip2: string;
  readonly address: string;
}

/** Values that change when a database is restored, copied or promoted. */
export interface DatabaseIdentity {
  /**
   * Identifies the database. For a schema of a distributed cluster, a space and the node with its rows follow, as
   * `<number>=<system>`.
   */
  readonly cluster: string;
  readonly timeline: number;
}

/**
 * Returns whether a cluster has moved a schema to another of its nodes. A move leaves the coordinator the same and
 * changes the number of the node. A node that was restored keeps its number.
 */
export function isMoved(before: DatabaseIdentity, after: DatabaseIdentity): boolean {
  const [from, fromNode = ''] = before.cluster.split(' ');
  const [to, toNode = ''] = after.cluster.split(' ');
  return from === to && toNode !== '' && fromNode.split('=')[0] !== toNode.split('=')[0];
}

const CURRENT = 'current';

/** Locks the check for restores until the transaction ends, so that only one process runs it. */
export function lockRestores(em: SqlEntityManager): Promise<void> {
  return lockName(em, 'restores', 'restores');
}

/** Returns the identity of the database when a server last used it; undefined if no server has used it. */
export async function findIdentity(em: SqlEntityManager): Promise<DatabaseIdentity | undefined> {
  return (await em.findOne(DatabaseIdentityEntity, CURRENT, { disableIdentityMap: true })) ?? undefined;
}

export async function storeIdentity(em: SqlEntityManager, identity: DatabaseIdentity): Promise<void> {
  const { cluster, timeline } = identity;
  await em.upsert(DatabaseIdentityEntity, { id: CURRENT, cluster, timeline });
}

/** Finds the newest restore, released or not; undefined if there was none. */
export async function findRestore(em: SqlEntityManager): Promise<Restore | undefined> {
  const [newest] = await em.find(
    RestoreEntity,
    {},
    { orderBy: { noticedAtMs: 'desc', id: 'desc' }, limit: 1, disableIdentityMap: true },
  );
  return newest;
}

/** The newest restore, and the size and root of the audit log. Each is undefined if the database has none. */
interface RestoreState {
  readonly restore: Restore | undefined;
  readonly log: { readonly size: number; readonly root: string } | undefined;
}

interface StateRow {
  readonly size: number | null;
  readonly root: string | null;
  readonly id: string | null;
  readonly cause: string;
  readonly noticed_at_ms: number;
  readonly newest_record_at_ms: number | null;
  readonly released_at_ms: number | null;
  readonly are_all_accepted: number;
}

const selectState = prepareQuery<object, StateRow>((database) => {
  const query = sql<StateRow>`select size, root, id, cause, noticed_at_ms, newest_record_at_ms, released_at_ms, are_all_accepted
    from (select 1 as one) as one
    left join (select size, root from audit_checkpoints order by size desc limit 1) as log on true
    left join (select * from restores order by noticed_at_ms desc, id desc limit 1) as newest on true`;
  return { compile: () => query.compile(database) };
});

/** Reads the newest restore and the end of the audit log in one statement, which every process runs once per second. */
export async function readRestoreState(em: SqlEntityManager): Promise<RestoreState> {
  const { rows } = await selectState(em, {});
  const { size, root, id, ...row } = rows[0]!;
  return {
    log: size === null || root === null ? undefined : { size, root },
    restore:
      id === null
        ? undefined
        : {
            ...{ id, cause: row.cause, noticedAtMs: row.noticed_at_ms },
            ...{ newestRecordAtMs: row.newest_record_at_ms, releasedAtMs: row.released_at_ms },
            areAllAccepted: row.are_all_accepted,
          },
  };
}

/**
 * Records that the database was restored. The server then refuses changes until an operator releases the restore, and
 * each account must be accepted before it can send again. Has no effect while changes are already refused.
 */
export async function noteRestore(
  {
    em,
    ids,
    nowMs,
  }: { readonly em: SqlEntityManager; readonly ids: Pick<Ids, 'uuid'>; readonly nowMs: number },
  cause: RestoreCause,
): Promise<void> {
  await lockRestores(em);
  const last = await findRestore(em);
  if (last !== undefined && last.releasedAtMs === null) return;
  await em.nativeDelete(AcceptedAccountEntity, {});
  await em.insert(RestoreEntity, {
    id: ids.uuid(),
    cause,
    // Later than the previous restore even if the clock was set back.
    noticedAtMs: Math.max(nowMs, (last?.noticedAtMs ?? 0) + 1),
    newestRecordAtMs: await newestRecordAt(em),
    releasedAtMs: null,
    areAllAccepted: 0,
  });
}

async function newestRecordAt(em: SqlEntityManager): Promise<number | null> {
  const { rows } = await sql<{ at_ms: number | null }>`
    select max(at_ms) as at_ms from (
      select max(created_at_ms) as at_ms from outbox_events
        where sequence = (select max(sequence) from outbox_events)
      union all select max(recorded_at_ms) from audit_pending where id = (select max(id) from audit_pending)
      union all select max(recorded_at_ms) from audit_records
        where leaf_index = (select max(leaf_index) from audit_records)
    ) newest
  `.execute(em.getKysely());
  return rows[0]?.at_ms ?? null;
}

/**
 * Releases the newest restore, so that the server allows changes again.
 *
 * @throws ApiError invalid_state if changes are not refused.
 */
export async function releaseRestore(em: SqlEntityManager, nowMs: number): Promise<Restore> {
  await lockRestores(em);
  const restore = await findRestore(em);
  if (restore === undefined || restore.releasedAtMs !== null) {
    throw new ApiError('invalid_state', 'no changes are held: the database does not count as restored');
  }
  await em.nativeUpdate(RestoreEntity, { id: restore.id }, { releasedAtMs: nowMs });
  return { ...restore, releasedAtMs: nowMs };
}

/** Allows the given accounts, or all accounts, to send again after the last restore. */
export async function acceptAccounts(
  em: SqlEntityManager,
  accounts: readonly RestoredAccount[] | 'all',
  { nowMs, by }: { readonly nowMs: number; readonly by: 'chain' | 'operator' },
): Promise<void> {
  if (accounts === 'all') {
    await em.nativeUpdate(RestoreEntity, { areAllAccepted: 0 }, { areAllAccepted: 1 });
    return;
  }
  for (const { caip2, address } of accounts) {
    await em.upsert(AcceptedAccountEntity, { caip2, address, acceptedAtMs: nowMs, acceptedBy: by });
  }
}
