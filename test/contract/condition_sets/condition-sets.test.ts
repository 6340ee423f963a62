import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { expectOwnersAreAsked, makePair, signedByPair } from '../policies/owner-signatures.ts';
import { seededStartMs, unknownId } from '../policies/rules.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const cuid2 = expect.stringMatching(/^[a-z][0-9a-z]{23}$/);
const notFound = { status: 404, body: { error: 'Condition set not found' } };

test('a set is created, read, renamed and deleted', async () => {
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'Suppliers' } });
  expect(made).toEqual({ id: cuid2, name: 'Suppliers', owner_id: null, created_at: seededStartMs });
  const path = { condition_set_id: made.id };
  expect((await call(sandbox, 'getConditionSet', { path })).body).toEqual(made);
  const renamed = await call(sandbox, 'updateConditionSet', { path, body: { name: 'Customers' } });
  expect(renamed.body).toEqual({ ...made, name: 'Customers' });
  expect((await call(sandbox, 'getConditionSet', { path })).body).toEqual(renamed.body);
  expect((await call(sandbox, 'deleteConditionSet', { path })).body).toEqual({ success: true });
  expect(await refusal(sandbox, 'getConditionSet', { path })).toEqual(notFound);
});

test('an owner is set, and removed with its signature', async () => {
  const owner = { public_key: aliceKey.publicKey };
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'Alice’s', owner } });
  expect(made.owner_id).toEqual(cuid2);
  const path = { condition_set_id: made.id };
  const signed = { signWith: [aliceKey.privateKey] };
  const freed = await call(sandbox, 'updateConditionSet', { path, body: { owner: null } }, signed);
  expect(freed.body).toEqual({ ...made, owner_id: null });
  const again = await call(sandbox, 'updateConditionSet', { path, body: { owner_id: made.owner_id! } });
  expect(again.body).toEqual(made);
});

test('deleting a set deletes its items', async () => {
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'Short' } });
  const path = { condition_set_id: made.id };
  const { body: items } = await call(sandbox, 'addConditionSetItems', { path, body: [{ value: 'a' }] });
  await call(sandbox, 'deleteConditionSet', { path });
  expect(await refusal(sandbox, 'listConditionSetItems', { path })).toEqual(notFound);
  const itemPath = { ...path, condition_set_item_id: items[0]!.id };
  expect(await refusal(sandbox, 'getConditionSetItem', { path: itemPath })).toEqual(notFound);
});

test('fields that are not in the contract are refused', async () => {
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'a'.repeat(100) } });
  const path = { condition_set_id: made.id };
  for (const body of [
    {},
    { name: '' },
    { name: 'a'.repeat(101) },
    { name: 5 },
    { name: 'a', color: 'red' },
    { name: 'a', owner_id: unknownId },
    { name: 'a', owner: { public_key: aliceKey.publicKey }, owner_id: unknownId },
  ]) {
    for (const answer of [
      await refusal(sandbox, 'createConditionSet', { body }),
      await refusal(sandbox, 'updateConditionSet', { path, body }),
    ]) {
      expect([answer.status, answer.body.code], JSON.stringify(body)).toEqual([400, 'invalid_data']);
    }
  }
  expect((await call(sandbox, 'getConditionSet', { path })).body).toEqual(made);
});

const changes: readonly { operation: OperationId; body?: unknown; ofItem?: true }[] = [
  { operation: 'updateConditionSet', body: { name: 'Taken' } },
  { operation: 'updateConditionSet', body: { owner: null } },
  { operation: 'addConditionSetItems', body: [{ value: 'mallory' }] },
  { operation: 'replaceConditionSetItems', body: [{ value: 'mallory' }] },
  { operation: 'deleteConditionSetItem', ofItem: true },
  { operation: 'deleteConditionSet' },
];

test.each(changes)("$operation requires the owners' signatures", async ({ operation, body, ofItem }) => {
  const owner_id = await makePair(sandbox);
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'Ours', owner_id } });
  const setPath = { condition_set_id: made.id };
  const { body: items } = await call(
    sandbox,
    'addConditionSetItems',
    { path: setPath, body: [{ value: 'friend' }] },
    signedByPair,
  );
  const path = ofItem ? { ...setPath, condition_set_item_id: items[0]!.id } : setPath;
  const change = { operation, input: body === undefined ? { path } : { path, body } };

  await expectOwnersAreAsked(sandbox, change);
  expect((await call(sandbox, 'getConditionSet', { path: setPath })).body).toEqual(made);
  const left = await call(sandbox, 'listConditionSetItems', { path: setPath });
  expect(left.body).toEqual({ items, next_cursor: null });

  await call(sandbox, operation, change.input as never, signedByPair);
});

test('an unknown set, or one of another app, is not found', async () => {
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'Mine' } });
  const mine = { condition_set_id: made.id };
  const { body: items } = await call(sandbox, 'addConditionSetItems', { path: mine, body: [{ value: 'a' }] });
  const other = await asOtherApp(sandbox);
  for (const [who, path] of [
    [sandbox, { condition_set_id: unknownId }],
    [other, mine],
  ] as const) {
    const itemPath = { ...path, condition_set_item_id: items[0]!.id };
    expect(await refusal(who, 'getConditionSet', { path })).toEqual(notFound);
    expect(await refusal(who, 'updateConditionSet', { path, body: { name: 'x' } })).toEqual(notFound);
    expect(await refusal(who, 'deleteConditionSet', { path })).toEqual(notFound);
    expect(await refusal(who, 'listConditionSetItems', { path })).toEqual(notFound);
    expect(await refusal(who, 'addConditionSetItems', { path, body: [{ value: 'b' }] })).toEqual(notFound);
    expect(await refusal(who, 'replaceConditionSetItems', { path, body: [{ value: 'b' }] })).toEqual(
      notFound,
    );
    expect(await refusal(who, 'getConditionSetItem', { path: itemPath })).toEqual(notFound);
    expect(await refusal(who, 'deleteConditionSetItem', { path: itemPath })).toEqual(notFound);
  }
  const kept = await call(sandbox, 'listConditionSetItems', { path: mine });
  expect(kept.body.items).toEqual(items);
});

test('a quorum that owns a set cannot be deleted', async () => {
  const owner_id = await makePair(sandbox);
  const { body: made } = await call(sandbox, 'createConditionSet', { body: { name: 'Ours', owner_id } });
  const path = { key_quorum_id: owner_id };
  const answer = await refusal(sandbox, 'deleteKeyQuorum', { path }, signedByPair);
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain('the owner of a condition set');
  await call(sandbox, 'deleteConditionSet', { path: { condition_set_id: made.id } }, signedByPair);
  await call(sandbox, 'deleteKeyQuorum', { path }, signedByPair);
});
