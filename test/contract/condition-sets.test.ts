import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import type { OperationId } from '../../src/generated/operations.ts';
import type { ConditionSetItem } from '../../src/generated/schemas.ts';
import { call, refusal } from '../support/call.ts';
import { asOtherApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { expectOwnersAreAsked, makePair, signedByPair } from './policies/owner-signatures.ts';
import { seededStartMs, unknownId } from './policies/rules.ts';

describe('condition sets', () => {
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
    const { body: items } = await call(sandbox, 'addConditionSetItems', {
      path: mine,
      body: [{ value: 'a' }],
    });
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
});

describe('items of condition sets', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const cuid2 = expect.stringMatching(/^[a-z][0-9a-z]{23}$/);
  const asItems = (values: readonly string[]) => values.map((value) => ({ value }));
  const valuesOf = (items: readonly ConditionSetItem[]) => items.map(({ value }) => value);

  /** A new set of these values; they are added a millisecond apart, so that their order is known. */
  async function makeSet(values: readonly string[] = []): Promise<{ condition_set_id: string }> {
    const { body } = await call(sandbox, 'createConditionSet', { body: { name: 'a set' } });
    const path = { condition_set_id: body.id };
    for (const value of values) {
      sandbox.clock.advance(1);
      await call(sandbox, 'addConditionSetItems', { path, body: [{ value }] });
    }
    return path;
  }

  const list = async (path: { condition_set_id: string }, query: { query?: string; limit?: number } = {}) =>
    (await call(sandbox, 'listConditionSetItems', { path, query })).body;

  test('items are returned in the given order', async () => {
    const path = await makeSet();
    const { body } = await call(sandbox, 'addConditionSetItems', { path, body: asItems(['c', 'a', 'b']) });
    const created_at = sandbox.clock.now();
    expect(body).toEqual(
      ['c', 'a', 'b'].map((value) => ({
        id: cuid2,
        condition_set_id: path.condition_set_id,
        value,
        created_at,
      })),
    );
    for (const item of body) {
      const itemPath = { ...path, condition_set_item_id: item.id };
      expect((await call(sandbox, 'getConditionSetItem', { path: itemPath })).body).toEqual(item);
    }
  });

  test('an existing value keeps its item; values are case-sensitive', async () => {
    const path = await makeSet();
    const { body: first } = await call(sandbox, 'addConditionSetItems', {
      path,
      body: asItems(['0xAB', 'x']),
    });
    sandbox.clock.advance(1000);
    const { body: again } = await call(sandbox, 'addConditionSetItems', {
      path,
      body: asItems(['y', '0xAB', 'y', '0xab']),
    });
    expect(valuesOf(again)).toEqual(['y', '0xAB', '0xab']);
    expect(again[1]).toEqual(first[0]);
    expect(valuesOf((await list(path)).items).sort()).toEqual(['0xAB', '0xab', 'x', 'y']);
  });

  test('replacing the items gives new ids to values that stay', async () => {
    const path = await makeSet(['a', 'b']);
    const before = (await list(path)).items;
    const { body } = await call(sandbox, 'replaceConditionSetItems', {
      path,
      body: asItems(['b', 'c', 'b']),
    });
    expect(valuesOf(body)).toEqual(['b', 'c']);
    expect(new Set((await list(path)).items)).toEqual(new Set(body));
    for (const { id } of before) {
      const itemPath = { ...path, condition_set_item_id: id };
      expect(await refusal(sandbox, 'getConditionSetItem', { path: itemPath })).toEqual({
        status: 404,
        body: { error: 'Condition set item not found' },
      });
    }
  });

  test('deleting an item leaves the others', async () => {
    const path = await makeSet(['a', 'b', 'c']);
    const { items } = await list(path);
    const itemPath = { ...path, condition_set_item_id: items[1]!.id };
    expect((await call(sandbox, 'deleteConditionSetItem', { path: itemPath })).body).toEqual({
      success: true,
    });
    expect((await list(path)).items).toEqual([items[0], items[2]]);
    const notFound = { status: 404, body: { error: 'Condition set item not found' } };
    expect(await refusal(sandbox, 'deleteConditionSetItem', { path: itemPath })).toEqual(notFound);
  });

  test('an item of another set is not found', async () => {
    const [mine, other] = [await makeSet(['a']), await makeSet(['b'])];
    const { items } = await list(other);
    for (const condition_set_item_id of [items[0]!.id, unknownId]) {
      const path = { ...mine, condition_set_item_id };
      const notFound = { status: 404, body: { error: 'Condition set item not found' } };
      expect(await refusal(sandbox, 'getConditionSetItem', { path })).toEqual(notFound);
      expect(await refusal(sandbox, 'deleteConditionSetItem', { path })).toEqual(notFound);
    }
    expect((await list(other)).items).toEqual(items);
  });

  test('`query` matches values that contain it, ignoring case and without wildcards', async () => {
    const path = await makeSet([
      '100% pure',
      '100 pure',
      'snake_case',
      'snakeXcase',
      'back\\slash',
      "it's",
      'Zürich',
      '*',
    ]);
    const found = async (query: string) => valuesOf((await list(path, { query })).items);
    expect(await found('pure')).toEqual(['100 pure', '100% pure']);
    expect(await found('100%')).toEqual(['100% pure']);
    expect(await found('%')).toEqual(['100% pure']);
    expect(await found('_')).toEqual(['snake_case']);
    expect(await found('snake_c')).toEqual(['snake_case']);
    expect(await found('SNAKE')).toEqual(['snakeXcase', 'snake_case']);
    expect(await found('\\')).toEqual(['back\\slash']);
    expect(await found("'")).toEqual(["it's"]);
    expect(await found('ZÜRICH')).toEqual(['Zürich']);
    expect(await found('*')).toEqual(['*']);
    expect(await found('nothing')).toEqual([]);
  });

  test('paging returns every item once, newest first', async () => {
    const path = await makeSet();
    const values = Array.from({ length: 25 }, (_, index) => `v${index}`);
    // Many with equal times, so that the cursor must order them by id.
    await call(sandbox, 'addConditionSetItems', { path, body: asItems(values.slice(0, 12)) });
    sandbox.clock.advance(1);
    await call(sandbox, 'addConditionSetItems', { path, body: asItems(values.slice(12)) });

    const pages: ConditionSetItem[][] = [];
    let cursor: string | undefined;
    do {
      const query = cursor === undefined ? { limit: 10 } : { limit: 10, cursor };
      const { body } = await call(sandbox, 'listConditionSetItems', { path, query });
      pages.push(body.items);
      cursor = body.next_cursor ?? undefined;
    } while (cursor !== undefined && pages.length < 9);

    expect(pages.map(({ length }) => length)).toEqual([10, 10, 5]);
    const all = pages.flat();
    expect(new Set(valuesOf(all))).toEqual(new Set(values));
    const newest = all.map(({ created_at, id }) => [created_at, id] as const);
    expect(newest).toEqual(newest.toSorted(([a, x], [b, y]) => b - a || (x < y ? 1 : -1)));
  });

  test('a page that holds exactly all items is the last one; paging works within `query`', async () => {
    const path = await makeSet(['a1', 'b', 'a2', 'a3']);
    expect((await list(path, { limit: 4 })).next_cursor).toBeNull();
    const first = await list(path, { limit: 2, query: 'a' });
    expect(valuesOf(first.items)).toEqual(['a3', 'a2']);
    const query = { limit: 2, query: 'a', cursor: first.next_cursor! };
    const { body: second } = await call(sandbox, 'listConditionSetItems', { path, query });
    expect([valuesOf(second.items), second.next_cursor]).toEqual([['a1'], null]);
  });

  test('more than 100 values are listed in pages of 100', async () => {
    const path = await makeSet();
    const values = Array.from({ length: 150 }, (_, index) => `v${index}`);
    await call(sandbox, 'addConditionSetItems', { path, body: asItems(values.slice(0, 100)) });
    await call(sandbox, 'addConditionSetItems', { path, body: asItems(values.slice(100)) });
    const page = await list(path);
    expect(page.items).toHaveLength(100);
    expect(page.next_cursor).toEqual(page.items[99]!.id);
  });

  test('invalid cursors and limits are refused', async () => {
    const [path, other] = [await makeSet(['a']), await makeSet(['b'])];
    const foreign = (await list(other)).items[0]!.id;
    for (const query of [
      { cursor: unknownId },
      { cursor: foreign },
      { limit: 0 },
      { limit: 101 },
      { limit: 'x' },
      { query: '' },
    ]) {
      const answer = await refusal(sandbox, 'listConditionSetItems', { path, query });
      expect([answer.status, answer.body.code], JSON.stringify(query)).toEqual([400, 'invalid_data']);
    }
  });

  test('1 to 100 values of 1 to 512 characters are accepted', async () => {
    const path = await makeSet();
    const longest = 'a'.repeat(512);
    const hundred = [longest, ...Array.from({ length: 99 }, (_, index) => `v${index}`)];
    for (const operation of ['addConditionSetItems', 'replaceConditionSetItems'] as const) {
      for (const body of [
        [],
        asItems(Array.from({ length: 101 }, (_, index) => `v${index}`)),
        asItems(['']),
        asItems([`${longest}a`]),
        [{ value: 5 }],
        [{}],
        ['a'],
        [{ value: 'a', id: unknownId }],
        { value: 'a' },
      ]) {
        const answer = await refusal(sandbox, operation, { path, body });
        expect([answer.status, answer.body.code], JSON.stringify(body).slice(0, 80)).toEqual([
          400,
          'invalid_data',
        ]);
      }
      const { body } = await call(sandbox, operation, { path, body: asItems(hundred) });
      expect(valuesOf(body)).toEqual(hundred);
    }
  });

  test('text that cannot be stored is refused with its position', async () => {
    const path = await makeSet(['a']);
    const message = 'must be text without lone surrogates';
    for (const value of ['\ud83d', 'a\udc00']) {
      for (const operation of ['addConditionSetItems', 'replaceConditionSetItems'] as const) {
        expect(await refusal(sandbox, operation, { path, body: asItems(['fine', value]) })).toMatchObject({
          status: 400,
          body: { error: `/1/value: ${message}`, code: 'invalid_data' },
        });
      }
    }
    expect(valuesOf((await list(path)).items)).toEqual(['a']);
  });
});
