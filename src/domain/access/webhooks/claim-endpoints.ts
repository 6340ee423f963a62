import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import type { Claimant } from '../../base/processes/claims.ts';
import type { Tables } from '../../tables.ts';

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

/** A row of `webhook_endpoints`, columns as they are stored. */
export type EndpointRow = Selectable<Tables['webhook_endpoints']>;

const columns = [
  'id',
  'app_id',
  'url',
  'description',
  'event_types',
  'status',
  'disabled_reason',
  'after_sequence',
  'failing_since_ms',
  'failing_day_count',
  'last_failing_day',
  'next_due_at_ms',
  'lease_owner',
  'leased_until_ms',
  'created_at_ms',
  'updated_at_ms',
] as const satisfies readonly (keyof EndpointRow)[];

/**
 * How long a claim lasts unless it is extended. After a crash of the process, the others release it earlier, once they
 * count that process as dead.
 *
 * CHOICE: endpoints are claimed, not deliveries. So processes need not coordinate the order per resource or the limit
 * of requests to an endpoint, and a delivery costs one write. The queue consists of our own tables: graphile-worker
 * and pg-boss need PostgreSQL, and neither keeps the order per resource while other resources continue.
 */
export const LEASE_MS = 30_000;

/**
 * Claims endpoints with due deliveries and no active claim, those that have waited longest first. Includes endpoints
 * that a killed process of the same owner had claimed.
 *
 * @param known endpoints that this process already serves.
 * @returns their ids.
 */
export async function claimEndpoints(
  em: SqlEntityManager,
  claimant: Claimant,
  known: readonly string[],
  limit: number,
): Promise<string[]> {
  if (!(await isAnyEndpointWaiting(em, claimant, known))) return [];
  const claimed = await em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({ lease_owner: claimant.owner, leased_until_ms: claimant.nowMs + LEASE_MS })
    .where('id', 'in', selectWaiting(em, claimant, known).limit(limit).forUpdate().skipLocked())
    .returning('id')
    .execute();
  return claimed.map(({ id }) => id);
}

/** Whether there is an endpoint that `claimEndpoints` would claim. */
export async function isAnyEndpointWaiting(
  em: SqlEntityManager,
  claimant: Claimant,
  known: readonly string[],
): Promise<boolean> {
  return (await selectWaiting(em, claimant, known).limit(1).execute()).length > 0;
}

function selectWaiting(em: SqlEntityManager, { owner, nowMs }: Claimant, known: readonly string[]) {
  const waiting = em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select('id')
    .where('next_due_at_ms', '<=', nowMs)
    .where('status', '=', 'enabled')
    .where(({ or, eb }) =>
      or([
        eb('leased_until_ms', 'is', null),
        eb('leased_until_ms', '<=', nowMs),
        // Not in `known`, so a killed process of the same owner claimed it.
        eb('lease_owner', '=', owner),
      ]),
    )
    .orderBy('next_due_at_ms');
  return known.length === 0 ? waiting : waiting.where('id', 'not in', known);
}

/**
 * The current state of an endpoint that this process has claimed; undefined when its worker must stop. Does not wait
 * for locks.
 */
export async function readClaimedEndpoint(
  em: SqlEntityManager,
  { owner }: Claimant,
  id: string,
): Promise<EndpointRow | undefined> {
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select(columns)
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .where('lease_owner', '=', owner)
    .executeTakeFirst();
}

/** The same, and extends the claim by `LEASE_MS`. */
export async function holdEndpoint(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  id: string,
): Promise<EndpointRow | undefined> {
  return em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({ leased_until_ms: nowMs + LEASE_MS })
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .where('lease_owner', '=', owner)
    .returning(columns)
    .executeTakeFirst();
}

/**
 * Releases an endpoint, unless deliveries are already due. One that must be released nevertheless queues behind those
 * that have waited longer.
 *
 * @returns whether it was released.
 */
export async function releaseEndpoint(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  id: string,
  mustRelease: boolean,
): Promise<boolean> {
  const database = em.getKysely<Tables>();
  // Locked before its deliveries are read. A transaction that adds one also marks the endpoint, so it is either
  // visible here or waits.
  const endpoint = await database
    .selectFrom('webhook_endpoints')
    .select(['status', 'lease_owner'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (endpoint?.lease_owner !== owner) return true;
  const next = await database
    .selectFrom('webhook_deliveries')
    .select('next_attempt_at_ms')
    .where('endpoint_id', '=', id)
    .where('next_attempt_at_ms', 'is not', null)
    .orderBy('next_attempt_at_ms')
    .limit(1)
    .executeTakeFirst();
  const dueAtMs = next?.next_attempt_at_ms ?? null;
  if (!mustRelease && endpoint.status === 'enabled' && dueAtMs !== null && dueAtMs <= nowMs) return false;
  await database
    .updateTable('webhook_endpoints')
    .set({
      next_due_at_ms: dueAtMs === null ? null : Math.max(dueAtMs, nowMs),
      lease_owner: null,
      leased_until_ms: null,
    })
    .where('id', '=', id)
    .execute();
  return true;
}

/** Releases the endpoints of a process that has ended. */
export async function releaseEndpointsOf(em: SqlEntityManager, { owner }: Claimant): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({ lease_owner: null, leased_until_ms: null })
    .where('lease_owner', '=', owner)
    .execute();
}
