import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { call, judgeOf, refusal } from '../../support/call.ts';
import type { Judge } from '../../support/document-judge.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
let judge: Judge;
beforeAll(async () => {
  sandbox = await startSandbox();
  judge = await judgeOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const all = Object.values(operations);
// OAuth clients have refusals of their own: test/contract/oauth.
const closed = all.filter(({ security }) => security !== 'none' && security !== 'oauth-client');
const withBody = closed.filter(({ hasBody }) => hasBody);

const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;

interface Sent {
  readonly headers?: Record<string, string | undefined> | undefined;
  readonly body?: string;
}

/** Sends a request to an operation and validates the response against the document. */
async function sendTo(id: OperationId, { headers = {}, body }: Sent) {
  const { method, path } = operations[id];
  const own = { authorization: basic(sandbox.appId, sandbox.appSecret), 'service-app-id': sandbox.appId };
  const sent = Object.entries({ ...own, ...headers }).filter((entry) => entry[1] !== undefined);
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: path.replaceAll(/\{[^}]+\}/g, 'fmfdj6yqly31huorjqzq38zc'),
    method: method as 'GET',
    headers: Object.fromEntries(sent) as Record<string, string>,
    body: body ?? null,
  });
  const response = (await answer.body.json()) as object;
  const contentType = String(answer.headers['content-type']);
  judge({ operationId: id, status: answer.statusCode, contentType, body: response });
  return { status: answer.statusCode, body: response };
}

describe('every operation that is not open to all', () => {
  const refusals: [what: string, headers: () => Sent['headers'], answer: object][] = [
    [
      'asks for credentials',
      () => ({ authorization: undefined }),
      {
        status: 401,
        body: { error: 'Missing or invalid authorization header.', code: 'missing_or_invalid_token' },
      },
    ],
    [
      'refuses a wrong secret',
      () => ({ authorization: basic(sandbox.appId, 'wrong') }),
      { status: 401, body: { error: 'Invalid app ID or app secret.' } },
    ],
    [
      'asks for the app id',
      () => ({ 'service-app-id': undefined }),
      {
        status: 400,
        body: { error: 'Missing or invalid app ID.', code: 'missing_or_invalid_service_app_id' },
      },
    ],
    [
      'refuses the id of another app',
      () => ({ 'service-app-id': 'cmother00000000000000000' }),
      { status: 401, body: { error: 'Invalid app ID or app secret.' } },
    ],
  ];
  test.each(refusals)('every operation that is not open to all: %s', async (_what, headers, answer) => {
    for (const { id } of closed) expect(await sendTo(id, { headers: headers() }), id).toEqual(answer);
  });
});

describe('every operation with a body', () => {
  test.each(['{"oops"', '[]', '"text"', '7', '{"no_such_property":1}'])(
    'every operation with a body refuses the body %s',
    async (body) => {
      for (const { id } of withBody) {
        const answer = await sendTo(id, { headers: { 'content-type': 'application/json' }, body });
        expect(answer, id).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
      }
    },
  );
});

describe('faults are reported with their position', () => {
  test('faults are reported with their position in the body, by JSON pointer', async () => {
    expect(await refusal(sandbox, 'createWallet', { body: { chain_type: 'dogecoin' } })).toMatchObject({
      status: 400,
      body: {
        error: expect.stringMatching(/^\/chain_type: must be one of ethereum, solana, cosmos, /),
        data: { issues: [{ in: 'body', pointer: '/chain_type' }] },
      },
    });
    expect(
      await refusal(sandbox, 'createWallet', { body: { chain_type: 'ethereum', colour: 'red' } }),
    ).toEqual({
      status: 400,
      body: {
        error: '/colour: unknown property',
        code: 'invalid_data',
        data: { issues: [{ in: 'body', pointer: '/colour', message: 'unknown property' }] },
      },
    });
  });

  test('faults are reported with their position in the query, by name', async () => {
    const message = 'Query limit can be at maximum 100 records.';
    expect(await refusal(sandbox, 'listWallets', { query: { limit: 101 } })).toEqual({
      status: 400,
      body: {
        error: `limit: ${message}`,
        code: 'invalid_data',
        data: { issues: [{ in: 'query', pointer: '/limit', message }] },
      },
    });
  });
});

describe('addresses', () => {
  const get = async (path: string, method = 'GET', headers = {}) => {
    const own = { authorization: basic(sandbox.appId, sandbox.appSecret), 'service-app-id': sandbox.appId };
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path,
      method: method as 'GET',
      headers: { ...own, ...headers },
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, headers: answer.headers, text };
  };

  test('an unknown path is not found, a known one lists its methods', async () => {
    expect(await get('/v1/nothing')).toMatchObject({ status: 404, text: '{"error":"Not found"}' });
    expect(await get('/nothing')).toMatchObject({ status: 404, text: '{"error":"Not found"}' });
    expect(await get('/v1/wallets', 'DELETE')).toMatchObject({
      status: 405,
      text: '{"error":"method not allowed"}',
      headers: { allow: 'GET, HEAD, POST' },
    });
  });

  test('/api/v1 equals /v1, and a trailing slash is accepted', async () => {
    const [plain, alias, slash] = await Promise.all(
      ['/v1/wallets', '/api/v1/wallets', '/v1/wallets/'].map((path) => get(path)),
    );
    expect([alias?.text, slash?.text]).toEqual([plain?.text, plain?.text]);
    expect(plain?.status).toBe(200);
  });

  test('every answer carries a request id of its own', async () => {
    const ids = await Promise.all(
      ['/v1/wallets', '/v1/nothing', '/docs', '/openapi.json', '/docs/none'].map(
        async (path) => (await get(path, 'GET', { 'x-request-id': 'mine' })).headers['x-request-id'],
      ),
    );
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('the document and its reference need no credentials and are read-only', async () => {
    const bare = { authorization: '', 'service-app-id': '' };
    expect(JSON.parse((await get('/openapi.json', 'GET', bare)).text)).toMatchObject({ openapi: '3.1.0' });
    const page = await get('/docs', 'GET', bare);
    expect(page.status).toBe(200);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(await get('/docs', 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });
});

test('a client of another brand gets branded responses', async () => {
  await using acme = await startSandbox({ prefix: 'acme' });
  const { body } = await call(acme, 'listWallets', {});
  expect(body.data.length).toBeGreaterThan(0);
  expect(await refusal(acme, 'listWallets', {}, { headers: { 'acme-app-id': undefined } })).toEqual({
    status: 400,
    body: { error: 'Missing or invalid app ID.', code: 'missing_or_invalid_acme_app_id' },
  });
  const inOurWords = { 'acme-app-id': undefined, 'service-app-id': acme.appId };
  expect(await refusal(acme, 'listWallets', {}, { headers: inOurWords })).toMatchObject({ status: 400 });
});

test('the rate limit is off by default', async () => {
  await using limited = await startSandbox({ rateLimit: { perSecond: 1, burst: 2 } });
  const free = await Promise.all(Array.from({ length: 20 }, () => call(sandbox, 'listWallets', {})));
  expect(free[0]?.headers).not.toHaveProperty('ratelimit');
  await call(limited, 'listWallets', {});
  await call(limited, 'listWallets', {});
  expect(await refusal(limited, 'listWallets', {})).toEqual({
    status: 429,
    body: { error: 'Too many requests. Please wait to try again.', code: 'too_many_requests' },
  });
});
