import type { SqlEntityManager } from '@mikro-orm/sql';
import { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebhookEndpointEntity } from '../../../src/domain/access/webhooks/webhook.entity.ts';
import { listWebhookDeliveries } from '../../../src/domain/access/webhooks/webhook-deliveries.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { contextOf } from '../contexts.ts';
import { planOf, recordStatements } from '../plans.ts';

const COUNT = 5_000;

describe.each(databaseKinds)('on %s, the deliveries to an endpoint', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
    const em = database.orm.em.fork();
    em.create(WebhookEndpointEntity, {
      ...{ id: 'endpoint', appId: 'acme', url: 'https://acme.example', description: null, eventTypes: ['*'] },
      ...{ status: 'enabled', disabledReason: null, afterSequence: 0, failingSinceMs: null },
      ...{ failingDayCount: 0, lastFailingDay: 0, nextDueAtMs: null, leaseOwner: null, leasedUntilMs: null },
      ...{ createdAtMs: 0, updatedAtMs: 0 },
    });
    await em.flush();
    // The oldest ones have failed or are pending.
    await em.execute(`
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${COUNT})
      insert into webhook_deliveries (id, endpoint_id, event_sequence, event_id, event_type, status, order_key,
        failures, attempt_count, attempts, next_attempt_at_ms, created_at_ms, finished_at_ms)
      select 'delivery ' || n, 'endpoint', n, 'event ' || n, 'user.created',
        case when n <= 3 then 'failed' when n <= 6 then 'pending' else 'delivered' end,
        null, 0, 0, '[]', case when n between 4 and 6 then 1 end, n, case when n between 4 and 6 then null else n end
      from numbers
    `);
    await em.execute(kind === 'sqlite' ? 'analyze' : 'analyze webhook_deliveries');
  });
  afterAll(() => database.close());

  test.each(['failed', 'pending'] as const)(
    'that are %s are found without reading others',
    async (status) => {
      const em = database.orm.em.fork() as SqlEntityManager;
      const list = () => listWebhookDeliveries(contextOf(em, 'acme'), 'endpoint', { status });
      expect((await list()).deliveries.map(({ event_sequence: sequence }) => sequence)).toEqual(
        status === 'failed' ? [3, 2, 1] : [6, 5, 4],
      );
      if (kind === 'sqlite') {
        const plan = (await planOf(database, list)).find((text) => text.includes('webhook_deliveries'));
        expect(plan).toContain(`webhook_deliveries_${status} `);
        return;
      }
      const kysely = em.getKysely<Tables>();
      const query = (await recordStatements(kysely, list)).find(({ sql }) =>
        sql.includes('webhook_deliveries'),
      )!;
      const { rows } = await kysely.executeQuery<{ 'QUERY PLAN': string }>(
        CompiledQuery.raw(`explain (analyze) ${query.sql}`, [...query.parameters]),
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toContain('Index Scan');
      expect(plan).not.toContain('Rows Removed');
    },
  );
});
