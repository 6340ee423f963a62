import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { inspectorPages } from '../../../src/cli/shell/open.ts';
import { operations } from '../../../src/generated/operations.ts';
import type { SandboxEvent } from '../../../src/sandbox/generated/schemas.ts';
import {
  type ApiDocument,
  draftRequest,
  matchingOperations,
  operationsOf,
  readDraft,
} from '../../../src/web/inspector/api-reference/document.ts';
import {
  appendEvents,
  filterEvents,
  unsettledAfter,
  withRenewed,
} from '../../../src/web/inspector/event-list.ts';
import { subjectText } from '../../../src/web/inspector/names.ts';
import { memberText } from '../../../src/web/inspector/texts.ts';
import { finalityText, stepsOf } from '../../../src/web/inspector/transaction-steps.ts';
import { allPages, balanceQueries } from '../../../src/web/inspector/wallet-facts.ts';

describe('the page of operations', () => {
  const all = operationsOf(document as unknown as ApiDocument);

  test('the page of operations has every operation of the document, with its parameters and examples', () => {
    expect(all.map(({ id }) => id).sort()).toEqual(Object.keys(operations).sort());
    for (const { id, path, parameters } of all) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect([id, Object.keys(parameters).sort()]).toEqual([id, names.sort()]);
    }
    const withBody = all.filter(({ id }) => operations[id as keyof typeof operations].bodyRequired);
    expect(withBody.filter(({ examples }) => examples.length === 0).map(({ id }) => id)).toEqual([]);
  });

  test('a draft is read as it was written, and nothing else is', () => {
    const [operation] = matchingOperations(all, 'walletRpc');
    const draft = readDraft(draftRequest(operation!, { method: 'x' }));
    expect(draft).toEqual({ path: operation!.parameters, query: {}, headers: {}, body: { method: 'x' } });
    expect(() => readDraft('[]')).toThrow('expected a JSON object');
    expect(() => readDraft('{"bodi": 1}')).toThrow('got `bodi`');
  });
});

test('events are found by what they contain, and a new log replaces the old one', () => {
  const event = (id: string, payload: object): SandboxEvent => ({
    ...{ id, app_id: 'a', type: 'wallet.archived', created_at_ms: 0 },
    ...{ subject: null, wallet: null, user: null, request_id: null, deliveries: [] },
    payload: { type: 'wallet.archived', ...payload },
  });
  const [first, second] = [event('1', { wallet_id: 'w1' }), event('2', { wallet_id: 'w2' })];
  const kept = appendEvents([first], { data: [second], began_anew: false });
  expect(kept).toEqual([first, second]);
  expect(filterEvents(kept, '')).toEqual([second, first]);
  expect(filterEvents(kept, 'W1')).toEqual([first]);
  expect(appendEvents(kept, { data: [second], began_anew: true })).toEqual([second]);
  const wallet = { id: 'w1', name: 'Till', address: '0xf0847576E76b06ebEba612E2F145827e658C9F6f' };
  const named = { ...first!, wallet: { ...wallet, chain_type: 'ethereum' } };
  expect(filterEvents([named], 'till')).toEqual([named]);
  expect(subjectText(named)).toBe('Till');
  const subject = { type: 'wallet_action', id: 'q8f3k1x7v2m5c9b4n6z0w2y4', name: null };
  expect(subjectText({ ...named, subject })).toBe('Till, wallet action q8f3k1…w2y4');
  expect(subjectText({ subject, wallet: null })).toBe('wallet action q8f3k1…w2y4');
  expect(subjectText({ subject: null, wallet: { ...wallet, name: null } })).toBe('0xf084…9F6f');
});

test('events are read again from the first whose deliveries are under way', () => {
  const event = (id: string, statuses: ('pending' | 'delivered')[] | null): SandboxEvent => ({
    ...{ id, app_id: 'a', type: 'wallet.archived', created_at_ms: 0 },
    ...{ subject: null, wallet: null, user: null, request_id: null },
    deliveries:
      statuses?.map((status) => ({ id: `${id} ${status}`, endpoint_id: 'e', status, attempt_count: 1 })) ??
      null,
    payload: { type: 'wallet.archived' },
  });
  const done = event('1', ['delivered']);
  expect(unsettledAfter([])).toBeUndefined();
  expect(unsettledAfter([done, event('2', [])])).toBeUndefined();
  expect(unsettledAfter([event('1', null)])).toBe('start');
  expect(unsettledAfter([done, event('2', ['delivered', 'pending']), done])).toBe('1');
  // Of more than a hundred events, the newest hundred are read again.
  const many = Array.from({ length: 150 }, (_, place) => event(`${place}`, null));
  expect(unsettledAfter(many)).toBe('49');
  expect(withRenewed([event('1', null), done], [event('1', ['delivered'])])).toEqual([done, done]);
});

test('balances are asked for once on each chain', () => {
  expect(balanceQueries('solana')).toEqual([{ chain: 'solana', asset: ['sol', 'usdc'] }]);
  expect(balanceQueries('ethereum').map(({ chain }) => chain)).toEqual(['ethereum', 'base', 'polygon']);
  expect(balanceQueries('constructor')).toEqual([]);
});

test('a list is read to its last page', async () => {
  const asked: (string | undefined)[] = [];
  const items = await allPages(async ({ cursor }) => {
    asked.push(cursor);
    return { data: [asked.length], next_cursor: asked.length < 3 ? `after ${asked.length}` : null };
  });
  expect([items, asked]).toEqual([
    [1, 2, 3],
    [undefined, 'after 1', 'after 2'],
  ]);
});

test('members of a quorum are named, with the time of their signature', () => {
  expect(memberText({ type: 'key', public_key: 'MFk', signed_at: null })).toBe('key …MFk: has not signed');
  expect(memberText({ type: 'key', public_key: 'MFk', signed_at: null }, new Map([['MFk', 'Alice']]))).toBe(
    'Alice: has not signed',
  );
  expect(memberText({ type: 'user', user_id: 'u1', signed_at: 1000 })).toBe(
    'user u1: signed at 1970-01-01 00:00:01.000 UTC',
  );
});

test('the steps of a transaction are those of its events', () => {
  const event = (type: string, id: string, atMs: number) =>
    ({ type, created_at_ms: atMs, payload: { type, transaction_id: id } }) as never;
  const events = [
    event('transaction.broadcasted', 'a', 1),
    event('transaction.broadcasted', 'b', 2),
    event('wallet.archived', 'a', 3),
    event('transaction.confirmed', 'a', 4),
  ];
  expect(stepsOf('a', events)).toEqual([
    { name: 'broadcasted', atMs: 1 },
    { name: 'confirmed', atMs: 4 },
  ]);
});

test.each([
  [100, 104, "Once its block is final: 56 more blocks, 112 s by the sandbox's clock."],
  [100, 159, "Once its block is final: 1 more block, 2 s by the sandbox's clock."],
  [null, 104, 'Once its block is final.'],
])('a transaction in block %s is final as the chain of block %s says', (block, latest, text) => {
  const chain = { block_number: latest, block_ms: 2000, finality_blocks: 60 };
  expect(finalityText(block, chain)).toBe(text);
});

test('custos open knows every page', () => {
  // Its components run in browsers only.
  const source = readFileSync(join(import.meta.dirname, '../../../src/web/inspector/pages.ts'), 'utf8');
  const ids = [...source.matchAll(/\bid: '(\w+)'/g)].map(([, id]) => id);
  // The page for those who change the style is in no menu.
  expect([...inspectorPages, 'components']).toEqual(ids);
});
