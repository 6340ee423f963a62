import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acmeApp } from '../../mocks/apps.ts';
import { configureApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

// Web pages of an app log users in without the app secret, from the origins that the app allows.
const page = 'https://app.acme.example';
const { email, otp_code: code } = acmeApp.testAccount;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  await configureApp(sandbox, { allowed_origins: [page] });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function logIn(headers: Record<string, string>, path: string) {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ email, code }),
  });
  const body = (await answer.body.json()) as { code?: string; token?: string };
  return { status: answer.statusCode, code: body.code, token: body.token, headers: answer.headers };
}

describe.each(['/v1/passwordless/authenticate', '/api/v1/passwordless/authenticate'])('%s', (path) => {
  const named = () => ({ 'service-app-id': sandbox.appId });

  test('is open to pages of an allowed origin, which may read the answer', async () => {
    const { status, token, headers } = await logIn({ ...named(), origin: page }, path);
    expect([status, typeof token]).toEqual([200, 'string']);
    expect(headers).toMatchObject({ 'access-control-allow-origin': page, vary: 'origin' });
  });

  test('is open to the app secret, as before', async () => {
    const basic = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
    expect((await logIn({ ...named(), authorization: `Basic ${basic}` }, path)).status).toBe(200);
  });

  test.each([
    ['no origin', {}, 401],
    ['another origin', { origin: 'https://app.acme.example.evil.example' }, 401],
    ['another scheme', { origin: 'http://app.acme.example' }, 401],
    ['the null origin', { origin: 'null' }, 401],
    ['an allowed origin and a wrong secret', { origin: page, authorization: 'Basic eDp5' }, 403],
    ['a page of this machine that the app does not allow', { origin: 'http://localhost:3000' }, 401],
  ] as [string, Record<string, string>, number][])('refuses %s', async (_, extra, status) => {
    const answer = await logIn({ ...named(), ...extra }, path);
    expect([answer.status, answer.token]).toEqual([status, undefined]);
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('refuses an unknown app, and no app', async () => {
    expect((await logIn({ 'service-app-id': 'capp_unknown', origin: page }, path)).status).toBe(401);
    expect((await logIn({ origin: page }, path)).status).toBe(400);
  });

  test('answers the preflight of a browser', async () => {
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path,
      method: 'OPTIONS',
      headers: {
        origin: page,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,service-app-id',
      },
    });
    expect([answer.statusCode, await answer.body.text()]).toEqual([204, '']);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': page,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'content-type,service-app-id',
    });
  });
});

describe('an app of a sandbox that lists no origins', () => {
  let fresh: TestSandbox;
  beforeAll(async () => {
    fresh = await startSandbox();
  });
  afterAll(() => fresh[Symbol.asyncDispose]());

  const from = async (origin: string) => {
    const { statusCode, headers, body } = await fresh.dispatcher.request({
      ...{ origin: fresh.baseUrl, path: '/v1/passwordless/authenticate', method: 'POST' },
      headers: { 'content-type': 'application/json', 'service-app-id': fresh.appId, origin },
      body: JSON.stringify({ email, code }),
    });
    await body.dump();
    return { status: statusCode, readableBy: headers['access-control-allow-origin'] };
  };

  test.each(['http://localhost:5173', 'http://127.0.0.1:3000', 'https://[::1]:8080'])(
    'an app of a sandbox that lists no origins admits pages of %s',
    async (origin) => expect(await from(origin)).toEqual({ status: 200, readableBy: origin }),
  );

  test.each(['https://app.acme.example', 'http://localhost.acme.example', 'null'])(
    'an app of a sandbox that lists no origins does not admit pages of %s',
    async (origin) => expect(await from(origin)).toEqual({ status: 401, readableBy: undefined }),
  );
});

describe('an outsider who sends what the page of an app sends', () => {
  let limited: TestSandbox;
  beforeAll(async () => {
    limited = await startSandbox({ rateLimit: { perSecond: 10, burst: 10 } });
    await configureApp(limited, { allowed_origins: [page] });
  });
  afterAll(() => limited[Symbol.asyncDispose]());

  const send = async (
    method: 'GET' | 'POST',
    path: string,
    headers: Record<string, string>,
    body?: object,
  ) => {
    const answer = await limited.dispatcher.request({
      ...{ origin: limited.baseUrl, path, method },
      headers: { 'content-type': 'application/json', 'service-app-id': limited.appId, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    await answer.body.dump();
    return { status: answer.statusCode, limit: answer.headers['ratelimit-policy'] };
  };
  const basic = () => ({
    authorization: `Basic ${Buffer.from(`${limited.appId}:${limited.appSecret}`).toString('base64')}`,
  });

  // Everything that can be sent without a secret, with what makes a request cost more points.
  const dear = { 'service-authorization-signature': Array(200).fill('s').join(',') };
  test.each<[string, 'GET' | 'POST', string, Record<string, string>, object?]>([
    [
      'a login',
      'POST',
      '/v1/passwordless/authenticate',
      { ...dear, origin: page },
      { email, code: '000000' },
    ],
    ['a user token', 'GET', '/v1/users/me', { authorization: 'Bearer a.b.c' }],
    ['a wrong secret', 'GET', '/v1/wallets', { authorization: 'Basic eDp5' }],
    ['a device', 'POST', '/v1/oauth/device_authorization', dear, { client_id: 'capp_unknown' }],
    ['the document', 'GET', '/openapi.json', {}],
    ['the keys of the app', 'GET', '/.well-known/jwks.json', {}],
  ])('charges nothing to the app: %s', async (_, method, path, headers, body) => {
    const statuses = [];
    for (let turn = 0; turn < 24; turn += 1) statuses.push((await send(method, path, headers, body)).status);
    expect(statuses.filter((status) => status >= 500)).toEqual([]);
    expect(await send('GET', '/v1/wallets', basic())).toMatchObject({ status: 200, limit: '"app";q=10;w=1' });
  });

  test('an outsider who sends what the page of an app sends is limited by its address, also for the largest page', async () => {
    const statuses = [];
    for (let turn = 0; turn < 24; turn += 1) statuses.push((await send('GET', '/openapi.json', {})).status);
    expect(statuses).toContain(429);
    const login = () => send('POST', '/v1/passwordless/authenticate', { origin: page }, { email, code: '1' });
    await expect.poll(async () => (await login()).status).toBe(429);
  });
});

test('operations that need the app secret answer no preflight', async () => {
  const { statusCode, headers, body } = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/v1/wallets',
    method: 'OPTIONS',
    headers: { origin: page, 'access-control-request-method': 'POST' },
  });
  await body.dump();
  expect(statusCode).toBeGreaterThanOrEqual(401);
  expect(headers).not.toHaveProperty('access-control-allow-origin');
});
