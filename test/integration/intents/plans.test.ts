import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dismissIntentsAbout } from '../../../src/domain/base/resource-changes/dismiss-intents.ts';
import { settleInterruptedIntents } from '../../../src/domain/requests/intents/execute-intent.ts';
import { expireIntents } from '../../../src/domain/requests/intents/intent.ts';
import { listIntents } from '../../../src/domain/requests/intents/list-intents.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { contextOf } from '../contexts.ts';
import { planOf } from '../plans.ts';

const count = 20_000;

describe.each(databaseKinds)('%s finds intents by index', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
    const em = database.orm.em.fork();
    // One in a hundred is pending, and the newest of these expire last. Each is about one of five thousand policies.
    await em.execute(`
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
      insert into intents
        (id, app_id, intent_type, status, operation_id, path_parameters, url, subject_id, resource_id,
         created_at_ms, updated_at_ms, expires_at_ms, authorization_details)
      select 'intent-' || n, 'acme', 'POLICY',
        case when n % 100 = 0 then 'pending' when n % 2000 = 1 then 'processing'
          when n % 100 < 10 then 'expired' else 'executed' end,
        'updatePolicy', '{}', 'https://a/', 'policy-' || (n % 5000), 'policy-' || (n % 5000),
        n, n + n % 7, n + 1000000, '[]'
      from numbers`);
    await em.execute(`
      insert into intent_parties (intent_id, key_quorum_id, position)
      select id, 'quorum-' || (created_at_ms % 4000), 0 from intents`);
    await em.execute(`
      insert into key_quorum_members (key_quorum_id, position, kind, member)
      select distinct key_quorum_id, 0, 'user', 'did:service:' || key_quorum_id from intent_parties`);
    await sql.raw(kind === 'sqlite' ? 'analyze' : 'vacuum analyze').execute(em.getKysely<Tables>());
  });
  afterAll(() => database.close());

  const reading = (userId?: string): OperationContext => {
    const context = contextOf(database.orm.em.fork() as SqlEntityManager, 'acme', 500_000);
    return { ...context, proof: { ...context.proof, userId } };
  };
  const page = { limit: 50 };

  // `few`: so few rows that sorting them is negligible.
  const lookUps: { name: string; index: RegExp; few?: true; run: () => Promise<unknown> }[] = [
    { name: 'the newest', index: /intents_by_age/, run: () => listIntents(reading(), {}, page) },
    {
      name: 'the next page',
      index: /intents_by_age/,
      run: () => listIntents(reading(), {}, { ...page, cursor: '9000.intent9000' }),
    },
    {
      name: 'the next to expire',
      index: /intents_by_expiry/,
      run: () => listIntents(reading(), {}, { ...page, order: 'expires_at_asc' }),
    },
    {
      name: 'the last changed',
      index: /intents_by_change/,
      run: () => listIntents(reading(), {}, { ...page, order: 'updated_at_desc' }),
    },
    {
      name: 'of a status',
      index: /intents_by_status\b/,
      run: () => listIntents(reading(), { status: 'failed' }, page),
    },
    {
      name: 'pending, the next to expire',
      index: /intents_by_status_expiry|intents_pending_by_expiry/,
      run: () => listIntents(reading(), { status: 'pending' }, { ...page, order: 'expires_at_asc' }),
    },
    {
      name: 'about a resource',
      few: true,
      index: /intents_by_resource/,
      run: () => listIntents(reading(), { resourceId: 'policy-77' }, page),
    },
    {
      name: 'that a member can still sign',
      few: true,
      index: /intent_parties_by_quorum/,
      run: () => listIntents(reading(), { pendingMemberId: 'did:service:quorum-100' }, page),
    },
    {
      name: 'of a user',
      few: true,
      index: /intent_parties_by_quorum/,
      run: () => listIntents(reading('did:service:quorum-100'), {}, page),
    },
    {
      name: 'to dismiss',
      few: true,
      index: /intents_pending_by_subject/,
      run: () => dismissIntentsAbout(reading(), { resource: 'policy', id: 'policy-100', change: 'changed' }),
    },
    {
      name: 'that have expired',
      index: /intents_pending_by_expiry/,
      run: () => expireIntents({ ...reading(), nowMs: 1 }),
    },
    {
      name: 'that were left',
      index: /intents_processing/,
      run: () => settleInterruptedIntents({ ...reading(), nowMs: 1 }),
    },
  ];

  test.each(lookUps)('$name', async ({ index, few, run }) => {
    const plans = await planOf(database, run);
    // A list also reads what its intents are about.
    const plan = plans.findLast((text) => /\bintents(_|\b)/.test(text)) ?? '';
    expect(plan).toMatch(index);
    expect(plan, 'no other rows are read').not.toMatch(
      /Seq Scan on (intents|intent_parties)|SCAN (intents|intent_parties)/,
    );
    if (!few) expect(plan, 'the index has the order').not.toMatch(/Sort|TEMP B-TREE/);
  });
});
