import type { SqlEntityManager } from '@mikro-orm/sql';
import { encodeFunctionData, parseAbi, toBytes } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NUMBER_KEY } from '../../src/domain/access/condition-sets/condition-set.entity.ts';
import { decide, evaluatePolicies } from '../../src/domain/access/policies/enforce-policies.ts';
import type { PolicyAction } from '../../src/engine/policy/action.ts';
import { compilePolicy } from '../../src/engine/policy/compile.ts';
import { numberKey } from '../../src/engine/policy/operators.ts';
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

  test('finds a number in all of its notations, and by index', async () => {
    const items: Readonly<Record<string, readonly bigint[]>> = {
      '007': [7n],
      '0x00fF': [255n],
      '-0012': [-12n],
      '00': [0n],
      '9000': [9000n],
      [`0x${'0'.repeat(40)}BEEF`]: [0xbeefn],
    };
    const em = database.orm.em.fork();
    for (const [index, value] of Object.keys(items).entries()) {
      await em.execute(
        'insert into condition_set_items (id, condition_set_id, value, value_lower, created_at_ms) values (?, ?, ?, ?, 0)',
        [`number-${index}`, setId, value, value.toLowerCase()],
      );
    }
    const abi = parseAbi(['function f(int256 x)']);
    const field = { field_source: 'ethereum_calldata', field: 'f.x', operator: 'in_condition_set' } as const;
    const numbers = compilePolicy({
      id: 'allow-numbers',
      chain_type: 'ethereum',
      rules: [
        {
          id: 'known',
          name: 'known numbers',
          method: 'eth_signTransaction',
          action: 'ALLOW',
          conditions: [{ ...field, value: setId, abi }],
        },
      ],
    });
    const judgeNumber = async (x: bigint) => {
      const context = contextOf(database.orm.em.fork() as SqlEntityManager, 'acme');
      const data = toBytes(encodeFunctionData({ abi, args: [x] }));
      const ethereumCall = { to: `0x${'1'.repeat(40)}`, value: 0n, chainId: 1n, data };
      const action = { method: 'eth_signTransaction', units: [{ label: 'transaction', ethereumCall }] };
      return (await decide(context, numbers, action, noTotals)).allowed;
    };
    for (const x of Object.values(items).flat()) expect([x, await judgeNumber(x)]).toEqual([x, true]);
    for (const x of [70n, 12n, 0xffn * 16n, 9n, 90n, -7n, 1n, -9000n]) {
      expect([x, await judgeNumber(x)]).toEqual([x, false]);
    }
    await em.execute('analyze');
    const plans = await planOf(database, () => judgeNumber(7n));
    const asked = plans.filter((plan) => plan.includes('condition_set_items'));
    expect(asked.length).toBeGreaterThan(0);
    for (const plan of asked) expect(plan).toMatch(/condition_set_items_by_number/);
  });

  test('the database reads the key of a number like the engine', async () => {
    const texts = [
      '0',
      '00',
      '0.0',
      '100.00',
      '0100',
      '0x00a',
      '-007',
      '-0',
      '.',
      '..',
      '100.',
      '.5',
      '1.2.30',
    ];
    const others = [
      '',
      '0x',
      '0X0F',
      '-',
      '--0',
      '-0.50',
      'a.00',
      '00a',
      '0xg00',
      ' 0',
      '0 ',
      'é0',
      '0.é',
      "'0",
    ];
    const em = database.orm.em.fork();
    for (const text of [...texts, ...others]) {
      const [row] = await em.execute(`select ${NUMBER_KEY} as found from (select ? as value_lower) as item`, [
        text.toLowerCase(),
      ]);
      expect([text, (row as { found: string }).found]).toEqual([text, numberKey(text.toLowerCase())]);
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
