import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addOperator,
  changeOperatorRole,
  listOperatorRecords,
  listOperators,
  type OperatorCaller,
  operatorRecordView,
  operatorWithSecret,
  recordCall,
  recordChange,
  removeOperator,
  requireInForce,
} from '../../../src/domain/access/operators/operator.ts';
import { AuditRecordEntity } from '../../../src/domain/base/audit/audit.entity.ts';
import { createNotes } from '../../../src/ports/operation-context.ts';
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
        ...{ notes: createNotes(), nowMs: clock.nowMs, by },
      }),
    );
  };
  const add = (name: string, role: 'viewer' | 'admin') =>
    inTransaction((context) => addOperator(context, operations.app.id, { name, role }));
  const recorded = async () =>
    (await inTransaction((context) => listOperatorRecords(context, operations.app.id, { limit: 100 })))
      .map(operatorRecordView)
      .map(({ action, result, operator_name, targets }) => ({
        ...{ action, result, targets },
        operatorName: operator_name,
      }));

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

  test('changes, reads and refusals are records of the audit log, without names', async () => {
    const { operator } = await add('Alice', 'viewer');
    const alice: OperatorCaller = { origin: 'admin_port', operator };
    await inTransaction((context) =>
      recordChange(context, {
        appId: operations.app.id,
        action: 'restoreWallet',
        targets: { wallet_id: 'w\u001b[2J' },
      }),
    );
    const call = { action: 'addOperator', targets: {}, result: 'operator_role_required' };
    await inTransaction((context) => recordCall(context, call), alice);
    expect(
      (await recorded()).map(({ action, result, operatorName }) => [action, result, operatorName]),
    ).toEqual([
      ['addOperator', 'operator_role_required', 'Alice'],
      ['restoreWallet', 'done', null],
      ['addOperator', 'done', null],
    ]);
    // What is read on a terminal does not control it.
    expect((await recorded())[1]?.targets).toEqual({ wallet_id: 'w?[2J' });
    const pages = await Promise.all(
      [undefined, 3, 2].map((before) =>
        inTransaction((context) => listOperatorRecords(context, operations.app.id, { limit: 1, before })),
      ),
    );
    expect(pages.flat().map(({ sequence }) => sequence)).toEqual([3, 2, 1]);
    const entries = await operations.database.orm.em.fork().find(AuditRecordEntity, {});
    expect(entries).toHaveLength(3);
    expect(JSON.stringify(entries)).not.toContain('Alice');
  });
});
