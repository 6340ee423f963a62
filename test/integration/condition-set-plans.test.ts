import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decide, evaluatePolicies } from '../../src/domain/access/policies/enforce-policies.ts';
import type { PolicyAction } from '../../src/engine/policy/action.ts';
import { compilePolicy } from '../../src/engine/policy/compile.ts';
import { StaleReadError } from '../../src/errors.ts';
import { isCollision } from '../../src/server/unit-of-work.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { contextOf, inTransaction } from './contexts.ts';
import { planOf } from './plans.ts';

const SIZE = 100_000;
const setId = 's'.repeat(24);

const policy = compilePolicy({
  id: 'allow-listed',
  chain_type: 'ethereum',
  rules: [
    {
      id: 'known',
      name: 'known messages',
      method: 'personal_sign',
      action: 'ALLOW',
      conditions: [{ field_source: 'message', field: 'content', operator: 'in_condition_set', value: setId }],
    },
  ],
});
const noTotals = { totalOf: () => undefined };
const signing = (content: string): PolicyAction => ({
  method: 'personal_sign',
  units: [{ label: 'message', messageBytes: new TextEncoder().encode(content) }],
});

describe.each(databaseKinds)('%s, a condition set of 100,000 values', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
    const em = database.orm.em.fork();
    await em.execute(
      `insert into condition_sets (id, app_id, name, owner_id, created_at_ms) values ('${setId}', 'acme', 'known', null, 0)`,
    );
    await em.execute(`
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${SIZE})
      insert into condition_set_items (id, condition_set_id, value, value_lower, created_at_ms)
      select 'item-' || n, '${setId}', 'Order ' || n, 'order ' || n, n from numbers`);
    await em.execute('analyze');
  });
  afterAll(() => database.close());

  const judge = async (content: string) => {
    const context = contextOf(database.orm.em.fork() as SqlEntityManager, 'acme');
    return (await decide(context, policy, signing(content), noTotals)).allowed;
  };

  test('contains its first and last value and no others', async () => {
    const contents = ['Order 1', `Order ${SIZE}`, `Order ${SIZE + 1}`, 'Order 0', 'Order', ''];
    expect(await Promise.all(contents.map(judge))).toEqual([true, true, false, false, false, false]);
  });

  test('is searched by index', async () => {
    const plans = await planOf(database, () => judge('Order 77'));
    const asked = plans.filter((plan) => plan.includes('condition_set_items'));
    expect(asked.length).toBeGreaterThan(0);
    for (const plan of asked) {
      expect(plan).toMatch(/condition_set_items_(by_)?value/);
      expect(plan).not.toMatch(/scan condition_set_items|seq scan/i);
    }
  });

  test('a policy that is deleted between two reads makes the request run again', async () => {
    const error = await inTransaction(database, (context) =>
      evaluatePolicies(context, [{ id: 'gone' }], signing('x'), noTotals),
    ).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StaleReadError);
    expect(isCollision(error)).toBe(true);
  });
});
