import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConditionSetItem } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { unknownId } from '../policies/rules.ts';

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
  const { body: first } = await call(sandbox, 'addConditionSetItems', { path, body: asItems(['0xAB', 'x']) });
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
  const { body } = await call(sandbox, 'replaceConditionSetItems', { path, body: asItems(['b', 'c', 'b']) });
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
  expect((await call(sandbox, 'deleteConditionSetItem', { path: itemPath })).body).toEqual({ success: true });
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
