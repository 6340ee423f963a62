import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
import { ExecutionEntity, type StoredExecution } from '../../access/automations/execution.entity.ts';
import { type Claimant, claimedUntil } from '../../base/processes/claims.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';

// HOT: Kysely, not for measured speed: a correlated subquery finds the first open execution of each asset.

/** How long a claimed execution belongs to the process that claimed it. */
const LEASE_MS = 60_000;
/** CHOICE: how long an execution is tried while a chain or service is unreachable. */
const RETRY_MS = 600_000;

const dueOf = (database: Kysely<Tables>, { nowMs, limit }: { nowMs: number; limit: number }) =>
  database
    .selectFrom('wallet_automation_executions as due')
    .select(['due.id', 'due.retry_until_ms as retryUntilMs'])
    .where('due.next_run_at_ms', '<=', nowMs)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('wallet_automation_executions as open')
            .select('open.id')
            .whereRef('open.wallet_id', '=', 'due.wallet_id')
            .whereRef('open.caip2', '=', 'due.caip2')
            .whereRef('open.asset_address', '=', 'due.asset_address')
            .where('open.status', 'in', ['pending', 'submitted'])
            .where((earlier) =>
              earlier.or([
                earlier('open.created_at_ms', '<', earlier.ref('due.created_at_ms')),
                earlier.and([
                  earlier('open.created_at_ms', '=', earlier.ref('due.created_at_ms')),
                  earlier('open.id', '<', earlier.ref('due.id')),
                ]),
              ]),
            ),
        ),
      ),
    )
    .orderBy('due.next_run_at_ms')
    .orderBy('due.id')
    .limit(limit)
    .forUpdate('due')
    .skipLocked();

const selectDue = prepareQuery(dueOf);

/**
 * Claims executions that are due, the most overdue first, by moving their next run.
 *
 * INVARIANT: of one wallet, chain and asset only the oldest open execution is claimed. A later one would sweep the
 * same money while the transactions of the first are pending.
 *
 * @param busy chains whose executions are left out.
 */
export async function claimDueExecutions(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { busy, limit }: { readonly busy: readonly string[]; readonly limit: number },
): Promise<readonly StoredExecution[]> {
  const database = em.getKysely<Tables>();
  const wanted = { nowMs, limit };
  const due =
    busy.length === 0
      ? (await selectDue(em, wanted)).rows
      : await dueOf(database, wanted).where('due.caip2', 'not in', busy).execute();
  for (const { id, retryUntilMs } of due) {
    await database
      .updateTable('wallet_automation_executions')
      .set({
        next_run_at_ms: nowMs + LEASE_MS,
        retry_until_ms: retryUntilMs ?? nowMs + RETRY_MS,
        claimed_by: owner,
      })
      .where('id', '=', id)
      .execute();
  }
  if (due.length === 0) return [];
  return em.find(
    ExecutionEntity,
    { id: { $in: due.map(({ id }) => id) } },
    { orderBy: { createdAtMs: 'asc', id: 'asc' } },
  );
}

/** Makes the executions due that a process had claimed before it ended. */
export async function releaseExecutionsOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    ExecutionEntity,
    { claimedBy: dead.owner, nextRunAtMs: claimedUntil(dead) },
    { nextRunAtMs: dead.nowMs },
  );
}
