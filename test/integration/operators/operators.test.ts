import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addOperator,
  changeOperatorRole,
  removeOperator,
} from '../../../src/domain/access/operators/change-operators.ts';
import { operatorWithSecret, requireInForce } from '../../../src/domain/access/operators/find-operator.ts';
import { listOperatorRecords, listOperators } from '../../../src/domain/access/operators/list-operators.ts';
import type { OperatorCaller } from '../../../src/domain/access/operators/operator-caller.ts';
import { recordCall, recordChange } from '../../../src/domain/access/operators/record-operator-action.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  beforeEach(async () => {
    operations = await openOperations(kind);
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  const commandLine: OperatorCaller = { origin: 'command_line' };
  const inTransaction = <T>(
    work: (context: Parameters<typeof addOperator>[0]) => Promise<T>,
    by = commandLine,
  ): Promise<T> => {
    const { services, clock, database } = operations;
    return database.orm.em.fork().transactional((em) =>
      work({
        ...{ em: em as SqlEntityManager, entropy: services.entropy, ids: services.ids },
        ...{ nowMs: clock.nowMs, by },
      }),
    );
  };
  const add = (name: string, role: 'viewer' | 'admin') =>
    inTransaction((context) => addOperator(context, operations.app.id, { name, role }));
  const recorded = async () =>
    (await inTransaction((context) => listOperatorRecords(context, operations.app.id, { limit: 100 }))).map(
      ({ action, result, operatorName, targets }) => ({ action, result, operatorName, targets }),
    );

  test('an operator is found by the secret until removed; only its hash is stored', async () => {
    const { operator, secret } = await add('Alice', 'viewer');
    expect(operator.secretHash).not.toContain(secret.slice(-20));
    const find = () => inTransaction(({ em }) => operatorWithSecret(em, secret));
    expect(await find()).toMatchObject({ id: operator.id, role: 'viewer' });
    await inTransaction((context) =>
      changeOperatorRole(context, operations.app.id, { operatorId: operator.id, role: 'admin' }),
    );
    expect(await find()).toMatchObject({ role: 'admin' });
    await inTransaction((context) => removeOperator(context, operations.app.id, operator.id));
    expect(await find()).toBeUndefined();
    expect(await inTransaction((context) => listOperators(context, operations.app.id))).toEqual([]);
    const again = inTransaction((context) => removeOperator(context, operations.app.id, operator.id));
    await expect(again).rejects.toMatchObject({ code: 'not_found' });
    expect(await recorded()).toEqual([
      {
        action: 'removeOperator',
        result: 'done',
        operatorName: null,
        targets: { operator_id: operator.id, role: 'admin' },
      },
      {
        action: 'changeOperatorRole',
        result: 'done',
        operatorName: null,
        targets: { operator_id: operator.id, role: 'admin', previous_role: 'viewer' },
      },
      {
        action: 'addOperator',
        result: 'done',
        operatorName: null,
        targets: { operator_id: operator.id, role: 'viewer' },
      },
    ]);
  });

  test('of two admins who remove each other at the same moment, one is left', async () => {
    const [alice, bob] = [(await add('Alice', 'admin')).operator, (await add('Bob', 'admin')).operator];
    const remove = (by: typeof alice, removed: typeof alice) =>
      inTransaction(
        async (context) => {
          await requireInForce(context.em, context.by);
          return removeOperator(context, operations.app.id, removed.id);
        },
        { origin: 'admin_port', operator: by },
      );
    const ended = await Promise.allSettled([remove(alice, bob), remove(bob, alice)]);
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = ended.find((each) => each.status === 'rejected');
    expect(refused?.reason).toMatchObject({ code: 'missing_or_invalid_token' });
    expect(await inTransaction((context) => listOperators(context, operations.app.id))).toHaveLength(1);
  });

  test('an operator of another app does not find this app', async () => {
    const outsider: OperatorCaller = {
      origin: 'admin_port',
      operator: { id: 'outsider', appId: 'another', name: 'Outsider', role: 'admin' },
    };
    const { operator } = await add('Alice', 'admin');
    const calls = [
      inTransaction((context) => listOperators(context, operations.app.id), outsider),
      inTransaction((context) => listOperatorRecords(context, operations.app.id, { limit: 1 }), outsider),
      inTransaction(
        (context) => addOperator(context, operations.app.id, { name: 'New', role: 'admin' }),
        outsider,
      ),
      inTransaction((context) => removeOperator(context, operations.app.id, operator.id), outsider),
    ];
    for (const ended of await Promise.allSettled(calls)) {
      expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'not_found' } });
    }
  });

  test('the record is bounded; reads do not push changes out, and one operator not those of another', async () => {
    const limits = { changesOfApp: 3, othersOfOperator: 2 };
    const by = (id: string): OperatorCaller => ({
      origin: 'admin_port',
      operator: { id, appId: operations.app.id, name: id, role: 'viewer' },
    });
    const change = (number: number) =>
      inTransaction((context) =>
        recordChange(
          context,
          { appId: operations.app.id, action: `change ${number}`, targets: { wallet_id: 'w\u001b[2J' } },
          limits,
        ),
      );
    const read = (who: string, number: number) =>
      inTransaction(
        (context) => recordCall(context, { action: `read ${number}`, targets: {}, result: 'done' }, limits),
        by(who),
      );
    for (let number = 1; number <= 5; number += 1) await change(number);
    await read('bob', 0);
    for (let number = 1; number <= 5; number += 1) await read('alice', number);
    const kept = await recorded();
    expect(kept.map(({ action, operatorName }) => [action, operatorName])).toEqual([
      ['read 5', 'alice'],
      ['read 4', 'alice'],
      ['read 0', 'bob'],
      ['change 5', null],
      ['change 4', null],
      ['change 3', null],
    ]);
    // What is read on a terminal does not control it.
    expect(kept.at(-1)?.targets).toEqual({ wallet_id: 'w?[2J' });
  });
});
