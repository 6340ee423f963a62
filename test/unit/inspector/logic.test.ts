import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../../../src/sandbox/generated/schemas.ts';
import { fillPath, queryText } from '../../../src/web/inspector/control.ts';
import { rowAfterKey, topShowing, visibleRows } from '../../../src/web/inspector/parts/visible-rows.ts';
import { observedText } from '../../../src/web/inspector/policies/conditions.ts';
import { curlCommand, testOf } from '../../../src/web/inspector/requests/as-code.ts';
import { filterRequests, filtersIn, withNewer } from '../../../src/web/inspector/requests/filters.ts';
import { markedPayload, signatureCheckIn } from '../../../src/web/inspector/requests/signature-check.ts';
import { hrefOf, parseRoute } from '../../../src/web/inspector/routes.ts';
import {
  durationText,
  linesIn,
  settingsChange,
  timeOfDay,
  valueRequests,
} from '../../../src/web/inspector/texts.ts';

const request = (change: Partial<RecordedRequest>): RecordedRequest => ({
  id: 'id',
  received_at_ms: 0,
  machine_received_at_ms: 0,
  duration_ms: 1,
  method: 'GET',
  path: '/v1/wallets',
  operation: 'listWallets',
  app_id: 'app',
  wallet_id: null,
  subject: null,
  wallet: null,
  user: null,
  caused_by: null,
  status: 200,
  code: null,
  hint: null,
  ...change,
});

describe('addresses', () => {
  test('a route is read from its own address', () => {
    const text = fc.string({ minLength: 1, maxLength: 8 }).filter((value) => value.isWellFormed());
    fc.assert(
      fc.property(text, fc.array(text), fc.dictionary(text, text), (page, path, query) => {
        expect(parseRoute(hrefOf(page, path, query))).toEqual({ page, path, query });
      }),
    );
  });

  test('an empty address is that of Home; a broken escape is taken as it is', () => {
    expect(parseRoute('')).toEqual({ page: 'home', path: [], query: {} });
    expect(parseRoute('#/wallets/%E0%A4%A?x=1')).toEqual({
      page: 'wallets',
      path: ['%E0%A4%A'],
      query: { x: '1' },
    });
    expect(hrefOf('requests', [], { status: '', code: 'x' })).toBe('#/requests?code=x');
  });

  test('paths and queries of operations are escaped', () => {
    expect(fillPath('/a/{wallet_id}/b', { wallet_id: 'x/y' })).toBe('/a/x%2Fy/b');
    expect(queryText({ operation: ['a', 'b'], after: undefined, wallet: 'x&y' })).toBe(
      '?operation=a&operation=b&wallet=x%26y',
    );
  });
});

describe('filters of requests', () => {
  const all = [
    request({ id: '1' }),
    request({ id: '2', operation: 'walletRpc', status: 403, code: 'policy_violation', wallet_id: 'w1' }),
    request({ id: '3', operation: null, path: '/v1/nothing', status: 404, code: 'not_found' }),
    request({
      ...{ id: '4', operation: 'getWallet', path: '/v1/wallets/ext_wal_alice', wallet_id: 'w2' },
      wallet: { id: 'w2', name: 'Savings', address: '0xAbC', chain_type: 'ethereum' },
      user: { id: 'u', name: 'bob@shop.example' },
    }),
  ];
  const shown = (query: Record<string, string>) => filterRequests(all, filtersIn(query)).map(({ id }) => id);

  test.each([
    [{}, ['4', '3', '2', '1']],
    [{ text: 'WALLETRPC' }, ['2']],
    [{ text: 'nothing' }, ['3']],
    [{ status: '4xx' }, ['3', '2']],
    [{ status: '404' }, ['3']],
    [{ code: 'policy' }, ['2']],
    [{ wallet: 'alice' }, ['4']],
    [{ wallet: 'savings' }, ['4']],
    [{ wallet: '0xabc' }, ['4']],
    [{ text: 'bob@shop' }, ['4']],
    [{ wallet: 'w1', status: '4xx' }, ['2']],
    [{ wallet: 'w1', status: '2xx' }, []],
  ] as [Record<string, string>, string[]][])('%o shows %o, newest first', (query, ids) => {
    expect(shown(query)).toEqual(ids);
  });

  test('only the newest are kept', () => {
    expect(withNewer(all, [request({ id: '5' })], 3).map(({ id }) => id)).toEqual(['3', '4', '5']);
    expect(withNewer(all, [], 3)).toBe(all);
  });
});

describe('a table of many rows', () => {
  test('draws what is in view, and little more', () => {
    fc.assert(
      fc.property(
        fc.nat(20_000),
        fc.nat(700_000),
        fc.integer({ min: 1, max: 2000 }),
        (count, top, height) => {
          const { first, end } = visibleRows({ count, rowHeight: 32, top, height });
          expect(end - first).toBeLessThanOrEqual(height / 32 + 22);
          for (let row = Math.floor(top / 32); row < count && row * 32 < top + height; row += 1) {
            expect(row >= first && row < end).toBe(true);
          }
        },
      ),
    );
  });

  test('keys move within the rows', () => {
    const list = { current: 5, count: 10, pageRows: 20 };
    const keys = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'x', 'constructor'];
    expect(keys.map((key) => rowAfterKey(key, list))).toEqual([6, 4, 9, 0, 0, 9, undefined, undefined]);
    expect(rowAfterKey('ArrowDown', { current: -1, count: 0, pageRows: 5 })).toBeUndefined();
    expect(rowAfterKey('ArrowDown', { current: -1, count: 3, pageRows: 5 })).toBe(0);
  });

  test('scrolls no further than the row needs', () => {
    const list = { rowHeight: 32, top: 320, height: 320 };
    expect([9, 10, 19, 20].map((row) => topShowing(row, list))).toEqual([288, 320, 320, 352]);
  });
});

test('times and durations are short', () => {
  expect(timeOfDay(Date.UTC(2026, 0, 1, 13, 5, 2, 7))).toBe('13:05:02.007');
  expect([4.25, 1500, 90_000, 300_000, 7_200_000, 5 * 86_400_000].map(durationText)).toEqual([
    '4.3 ms',
    '1500 ms',
    '90 s',
    '5 min',
    '2 h',
    '5 d',
  ]);
});

describe('copies of a request', () => {
  const sent = {
    method: 'POST',
    path: '/v1/wallets?x=1',
    request: {
      headers: [
        { name: 'Host', value: '127.0.0.1' },
        { name: 'authorization', value: '[removed]' },
        { name: 'service-authorization-signature', value: '[removed]' },
        { name: 'content-type', value: 'application/json' },
      ],
      body_bytes: 1,
      body: { name: "it's $HOME `x`" },
    },
  };

  test('a shell reads the command as it was sent', () => {
    const command = curlCommand(sent, 'https://127.0.0.1:4010');
    const words = execFileSync('sh', ['-c', `curl() { printf '%s\\n' "$@"; }; ${command}`], {
      env: { APP_ID: 'app', APP_SECRET: 'secret', SERVICE_AUTHORIZATION_SIGNATURE: 'sig' },
      encoding: 'utf8',
    });
    expect(words.split('\n')).toEqual([
      ...['--cacert', '.custos/ca.pem', '-X', 'POST', 'https://127.0.0.1:4010/v1/wallets?x=1'],
      ...['-u', 'app:secret', '-H', 'service-authorization-signature: sig'],
      ...['-H', 'content-type: application/json', '--data', JSON.stringify(sent.request.body), ''],
    ]);
  });

  test('the test is a module with the request, its status and its code', () => {
    const text = testOf(
      { ...sent, operation: 'createWallet', status: 400, code: 'invalid_data' },
      'https://127.0.0.1:4010',
    );
    const body = text.replace(/^import .*$/gm, '');
    const run = new Function('env', 'expect', 'test', 'fetch', body);
    const calls: unknown[] = [];
    run({ APP_ID: 'a', APP_SECRET: 'b' }, undefined, (name: string) => calls.push(name), undefined);
    expect(calls).toEqual(['createWallet answers 400']);
    expect(text).toContain('toMatchObject({ code: "invalid_data" })');
    expect(text).not.toContain('[removed]');
  });
});

describe('the signed payload', () => {
  const payload =
    '{"body":{"a":"},\\"url\\":"},"headers":{"x":"y"},"method":"POST","url":"https://x/","version":1}';

  test('the differing member is marked, to its last byte', () => {
    const parts = markedPayload(payload, new Set(['url']));
    expect(parts.map(({ text }) => text).join('')).toBe(payload);
    expect(parts.filter(({ isMarked }) => isMarked)).toEqual([
      { text: '"url":"https://x/"', isMarked: true },
    ]);
    const first = markedPayload(payload, new Set(['body', 'version']));
    expect(first.filter(({ isMarked }) => isMarked).map(({ text }) => text)).toEqual([
      '"body":{"a":"},\\"url\\":"}',
      '"version":1',
    ]);
  });

  test('all of it is marked if it was serialized in another way', () => {
    expect(markedPayload(payload, new Set(['serialisation']))).toEqual([{ text: payload, isMarked: true }]);
  });

  test('any JSON object stays whole', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const json = JSON.stringify(value);
        const names = Object.keys(value);
        const parts = markedPayload(json, new Set(names));
        expect(parts.map(({ text }) => text).join('')).toBe(json);
        expect(parts.filter(({ isMarked }) => isMarked)).toHaveLength(
          names.includes('serialisation') ? 1 : names.length,
        );
      }),
    );
  });

  test('only a refusal of signatures has a check', () => {
    expect([null, 'text', {}, { data: {} }].map(signatureCheckIn)).toEqual(Array(4).fill(undefined));
  });
});

test('observations are readable', () => {
  expect(observedText({ state: 'present', values: ['1', '2'] })).toBe('observed "1", "2"');
  const ether = { symbol: 'ETH', decimals: 18 };
  expect(observedText({ state: 'present', values: ['1000000000000000000', '0x1'] }, ether)).toBe(
    'observed 1 ETH, "0x1"',
  );
  expect(observedText({ state: 'absent', reason: 'no such field' })).toBe('absent (no such field)');
});

test('a change of settings has what differs, and null for what was deleted', () => {
  const before = { allowed_origins: ['https://a.example'], mfa: { is_required: true }, kept: [1, { a: 2 }] };
  expect(settingsChange(before, { mfa: { is_required: false }, kept: [1, { a: 2 }], added: 'x' })).toEqual({
    allowed_origins: null,
    mfa: { is_required: false },
    added: 'x',
  });
  expect(settingsChange(before, before)).toEqual({});
  expect(settingsChange({}, { constructor: 1 })).toEqual({ constructor: 1 });
});

test('the values of a text are its lines, each once', () => {
  expect(linesIn(' a \n\n0xb\na\n0xb\n')).toEqual([' a ', '0xb', 'a']);
  expect(linesIn('\n')).toEqual([]);
});

test('the values of a condition set are sent a hundred at a time, and only the first request replaces', () => {
  const sent = valueRequests(Array.from({ length: 201 }, (_, index) => `v${index}`));
  expect(sent.map(({ operation, body }) => [operation, body.length, body[0]])).toEqual([
    ['replaceConditionSetItems', 100, { value: 'v0' }],
    ['addConditionSetItems', 100, { value: 'v100' }],
    ['addConditionSetItems', 1, { value: 'v200' }],
  ]);
  expect(valueRequests([])).toEqual([]);
});
