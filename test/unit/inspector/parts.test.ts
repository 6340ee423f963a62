import { describe, expect, test } from 'vitest';
import type {
  RecordedExchange,
  RecordedRequest,
  SandboxConnection,
} from '../../../src/sandbox/generated/schemas.ts';
import { connectionTexts } from '../../../src/web/inspector/connect.ts';
import { coverageMap, strengthOf } from '../../../src/web/inspector/coverage-map.ts';
import { flowOf, spread } from '../../../src/web/inspector/money-flow.ts';
import {
  chainOf,
  inWords,
  shortAmount,
  shortened,
  toneOf,
  usdText,
} from '../../../src/web/inspector/names.ts';
import { codeOf } from '../../../src/web/inspector/requests/as-code.ts';
import { requestsOverTime } from '../../../src/web/inspector/requests/over-time.ts';
import { ownerSigners } from '../../../src/web/inspector/wallet-facts.ts';

describe('names', () => {
  test('a chain has one name, whether it is known by its CAIP-2 id, its name or its type', () => {
    expect(['eip155:8453', 'base', 'eip155:31337', 'bitcoin-segwit'].map((id) => chainOf(id).name)).toEqual([
      'Base',
      'Base',
      'eip155:31337',
      'Bitcoin segwit',
    ]);
    expect(chainOf('base').color).toBe(chainOf('eip155:8453').color);
  });

  test('ids are shortened, and names of the API become words', () => {
    expect(shortened('0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')).toBe('0x5AAe…eAed');
    expect(shortened('short')).toBe('short');
    expect(inWords('earn_deposit')).toBe('Earn deposit');
    expect(['confirmed', 'execution_reverted', 'expired', 'pending', 'x'].map(toneOf)).toEqual([
      'good',
      'bad',
      'warn',
      'info',
      'none',
    ]);
  });
});

test('the seeded keys of an owner sign, as many as must', () => {
  const member = (name: string | null, type: 'public_key' | 'user' = 'public_key') => ({
    type,
    id: 'x',
    name,
  });
  const owner = { key_quorum_id: 'q', display_name: null, threshold: 2, size: 3 };
  const all = [member('Carol'), member('Bob'), member('Alice')];
  expect(ownerSigners({ ...owner, members: all })).toEqual(['alice', 'bob']);
  expect(ownerSigners({ ...owner, members: [member('Bob'), member(null)] })).toEqual(['bob']);
  expect(ownerSigners({ ...owner, members: [member('alice', 'user')] })).toEqual([]);
  expect([ownerSigners(null), ownerSigners(undefined)]).toEqual([[], []]);
});

test('requests are counted in the quarter of a minute in which they arrived, by the class of their status', () => {
  const nowMs = Date.UTC(2026, 0, 1, 12, 0, 7);
  const at = (agoMs: number, status: number) =>
    ({ machine_received_at_ms: nowMs - agoMs, status }) as RecordedRequest;
  const { bars, startMs, barMs } = requestsOverTime(
    [at(0, 200), at(1000, 404), at(20_000, 0), at(20_000, 503), at(16 * 60_000, 200)],
    nowMs,
  );
  const counts = bars.map(({ parts }) => parts.map(({ count }) => count).join(' '));
  expect([bars.length, counts.slice(-3)]).toEqual([60, ['0 0 0', '0 0 2', '1 1 0']]);
  expect(counts.filter((text) => text !== '0 0 0')).toHaveLength(2);
  expect(startMs + bars.length * barMs).toBe(Date.UTC(2026, 0, 1, 12, 0, 15));
});

test('a request is repeated in each language, with variables in place of what was not recorded', () => {
  const exchange = {
    ...{ id: '1', method: 'POST', path: '/v1/wallets', operation: 'createWallet', status: 200, code: null },
    ...{ user_id: null, signatures_sent: 0 },
    request: {
      headers: [
        { name: 'authorization', value: '[removed]' },
        { name: 'service-app-id', value: 'app' },
        { name: 'host', value: 'localhost' },
      ],
      body: { chain_type: 'ethereum' },
    },
  } as unknown as RecordedExchange;
  const code = new Map(codeOf(exchange, 'https://127.0.0.1:4010'));
  expect([...code.keys()]).toEqual(['curl', 'TypeScript', 'Python', 'Go', 'Java', 'Test']);
  for (const text of code.values()) {
    expect(text).toContain('https://127.0.0.1:4010/v1/wallets');
    expect(text).toContain('service-app-id');
    expect(text).toMatch(/APP_SECRET/);
    expect(text).not.toContain('localhost');
    expect(text).toContain('chain_type');
  }
});

test('the connection is written in every language, with its credentials', () => {
  const connection = {
    ...{ base_url: 'https://127.0.0.1:4010', app_id: 'app', app_secret: 'tell-nobody' },
    ...{ header_prefix: 'service', ca_file: null },
  } as unknown as SandboxConnection;
  const texts = new Map(connectionTexts(connection));
  expect([...texts.keys()]).toEqual(['Environment', 'curl', 'TypeScript', 'Python', 'Go', 'Java']);
  for (const text of texts.values()) {
    expect(text).toContain('https://127.0.0.1:4010');
    expect(text).toContain('tell-nobody');
  }
});

test('money has the same sum on both sides, and bands without gaps', () => {
  const { sources, holders, bands } = flowOf({
    ...{ given: '700', minted: '300' },
    held: { accounts: '600', pools: '250', fees: '150', vaults: '0' },
  });
  expect(sources.map(({ name, amount }) => `${name} ${amount}`)).toEqual([
    'faucet 700',
    'minted by contracts 300',
  ]);
  expect(holders.map(({ name }) => name)).toEqual(['accounts', 'pools', 'fees']);
  expect(bands.map(({ source, holder, from, to }) => [source, holder, from, to])).toEqual([
    ['faucet', 'accounts', 0, 0.6],
    ['faucet', 'pools', 0.6, 0.7],
    ['minted by contracts', 'pools', 0.7, 0.85],
    ['minted by contracts', 'fees', 0.85, 1],
  ]);
  expect(flowOf({ given: '5', minted: '-2', held: { accounts: '3' } }).holders.at(-1)).toMatchObject({
    ...{ name: 'burned by contracts', amount: 2n },
  });
  expect(flowOf({ given: '0', minted: '0', held: {} })).toEqual({ sources: [], holders: [], bands: [] });
});

test('operations are laid out against the statuses that any of them documents', () => {
  const operation = { requests: 3, covered: 1, total: 2 };
  const map = coverageMap([
    { ...operation, operation: 'a', statuses: { 200: 3, 404: 0 } },
    { ...operation, operation: 'b', statuses: { 200: 0 } },
  ]);
  expect(map.statuses).toEqual(['200', '404']);
  expect(map.rows.map(({ cells }) => cells.map((cell) => cell?.count))).toEqual([
    [3, 0],
    [0, undefined],
  ]);
  expect([0, 1, 5, 50, 500].map(strengthOf)).toEqual([0, 1, 2, 3, 4]);
});

test('dollars have separators and two places', () => {
  expect(['0', '1234.5', '1234567.891'].map(usdText)).toEqual(['$0.00', '$1,234.50', '$1,234,567.89']);
});

test('amounts in lists have separators and few decimals, but are never shown as 0', () => {
  const amounts = ['0', '0.5', '100000', '1234.5678', '0.123456789', '0.000000000000000001', 'unknown'];
  expect(amounts.map(shortAmount)).toEqual([
    ...['0', '0.5', '100,000', '1,234.57', '0.123457', '<0.000001', 'unknown'],
  ]);
});

test('labels of small amounts side by side do not cover each other, and stay in the picture', () => {
  expect(spread([60, 126, 128, 130], { height: 132, each: 30 })).toEqual([27, 57, 87, 117]);
  expect(spread([60], { height: 132, each: 30 })).toEqual([60]);
  expect(spread([0, 70], { height: 132, each: 30 })).toEqual([15, 70]);
});
