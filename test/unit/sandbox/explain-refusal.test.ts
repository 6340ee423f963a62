import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyNames } from '../../../mocks/authorization-keys.ts';
import control from '../../../openapi/control-plane.json' with { type: 'json' };
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { bodyShapes } from '../../../src/generated/body-shapes.ts';
import { errorCatalogue } from '../../../src/generated/errors.ts';
import { operations } from '../../../src/generated/operations.ts';
import type { RefusedRequest } from '../../../src/ports/refusals.ts';
import { errorTexts } from '../../../src/sandbox/why/error-texts.ts';
import { explainRefusals } from '../../../src/sandbox/why/explain-refusal.ts';
import { nearestName } from '../../../src/sandbox/why/nearest.ts';

const explainer = explainRefusals({
  ...{ prefix: 'service', operations: Object.values(operations), keyNames },
  shapes: bodyShapes,
});
const explain = (each: RefusedRequest) => explainer(each)!;
const codes = Object.keys(errorCatalogue) as (keyof typeof errorCatalogue)[];

const refused: fc.Arbitrary<RefusedRequest> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'BREW'),
  path: fc.oneof(fc.webPath(), fc.string()),
  headers: fc.dictionary(
    fc.constantFrom('authorization', 'service-app-id', 'acme-app-id', 'service-request-expiry', 'host', 'x'),
    fc.oneof(fc.string(), fc.constant('Basic OnNlY3JldA=='), fc.constant('Basic ')),
  ),
  operation: fc.option(fc.constantFrom('createWallet', 'walletRpc'), { nil: undefined }),
  status: fc.constantFrom(400, 401, 404, 405, 413, 500),
  code: fc.option(fc.constantFrom(...codes), { nil: undefined }),
  message: fc.string(),
  data: fc.oneof(
    fc.constant({}),
    fc.record({
      issues: fc.array(
        fc.record({
          in: fc.constantFrom('body', 'query', 'headers'),
          pointer: fc.oneof(
            fc.constant(''),
            fc.string().map((text) => `/${text}`),
            fc.constant('/a/b~1c'),
          ),
          message: fc.constantFrom('is required', 'unknown property', 'must be a string'),
        }),
      ),
    }),
  ),
  body: fc.anything(),
  responseHeaders: fc.dictionary(fc.constantFrom('retry-after', 'allow'), fc.string()),
  nowMs: fc.nat(),
});

test('explains any refusal, with a hint', () => {
  fc.assert(
    fc.property(refused, (each) => {
      const { hint, kind } = explain(each);
      expect(hint.length).toBeGreaterThan(0);
      expect(hint.length).toBeLessThan(2_000);
      expect(kind).toMatch(/^[a-z_]+$/);
    }),
    { numRuns: 300 },
  );
});

test('a secret in the credentials never gets into the explanation', () => {
  const authorization = `Basic ${Buffer.from('app:s3cr3t-of-the-app').toString('base64')}`;
  for (const code of codes) {
    const why = explain({ ...base, code, headers: { authorization } });
    expect(JSON.stringify(why)).not.toContain('s3cr3t');
  }
});

const base: RefusedRequest = {
  method: 'GET',
  path: '/v1/wallets',
  headers: {},
  operation: 'listWallets',
  status: 400,
  code: undefined,
  message: '',
  data: {},
  body: undefined,
  responseHeaders: {},
  nowMs: 0,
};

test('an app id that a shell left empty is named as such', () => {
  const headers = { authorization: `Basic ${btoa(':')}`, 'service-app-id': '' };
  expect(explain({ ...base, code: 'invalid_app_credentials', headers }).hint).toMatch(
    /^The app id of HTTP Basic is empty: .* Is a variable such as `\$APP_ID` not set/,
  );
});

test.each([
  [
    'is missing',
    {},
    /expected Unix milliseconds .* got no such header\. Send `service-request-expiry`, and sign it/,
  ],
  [
    'has passed',
    { 'service-request-expiry': '999' },
    / at 1000 .* got 999, 1 millisecond ago\. Send a later time/,
  ],
  [
    'is too far ahead',
    { 'service-request-expiry': '9000' },
    / at 1000 .* got 9000, 8 seconds ahead\. Send an earlier time/,
  ],
])('an expiry that %s', (_what, headers, hint) => {
  expect(explain({ ...base, code: 'request_expired', headers, nowMs: 1_000 }).hint).toMatch(hint);
});

describe('the texts of an error code', () => {
  const paths = new Set(
    [...Object.entries(document.paths), ...Object.entries(control.paths)].flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  );

  test.each(Object.entries(errorTexts))('%s: names only operations that exist', (_code, { next }) => {
    for (const [named] of next.matchAll(/\b(GET|POST|PUT|PATCH|DELETE) \/[a-z0-9_/{}]+/g)) {
      expect(paths).toContain(named);
    }
  });
});

describe('the nearest name', () => {
  test.each([
    ['chain_type', ['chain_tipe', 'owner'], 'chain_tipe'],
    ['chain_type', ['chainType'], 'chainType'],
    ['chain_type', ['owner', 'policy_ids'], undefined],
    ['id', ['is'], undefined],
  ] as const)('the nearest name of %s among %j is %s', (name, known, nearest) => {
    expect(nearestName(name, known)).toBe(nearest);
  });
});

test.each([
  ['eip155:8453', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', { with_gas: true }, ' --gas`, '],
  ['eip155:4217', '0x20c0000000000000000000000000000000000000', {}, '`, which adds the rest.'],
])('the repair of a missing token on %s adds gas only where it is paid', (caip2, token, gas, text) => {
  const amounts = { raw_needed: '2500000', raw_balance: '0' };
  const { hint, repairs } = explain({
    ...{ method: 'POST', path: '/v1/wallets/x/transfer', headers: {}, operation: 'transferFromWallet' },
    ...{ status: 400, code: 'insufficient_funds', message: '', body: {}, responseHeaders: {}, nowMs: 0 },
    data: { shortfall: { caip2, address: `0x${'42'.repeat(20)}`, token_address: token, ...amounts } },
  });
  expect(hint).toContain(text);
  const { asset: _, ...body } = (repairs[0] as { body: Record<string, unknown> }).body;
  expect(body).toEqual({ chain: caip2, address: `0x${'42'.repeat(20)}`, amount: '2.5', ...gas });
});
