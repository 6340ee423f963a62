import { gunzipSync } from 'node:zlib';
import type { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { composeRequest, firstValue, withIds } from '../../../src/web/docs/compose-request.ts';
import type { OperationDocument, Settings } from '../../../src/web/docs/operation-document.ts';
import { createSearch, type SearchEntry } from '../../../src/web/docs/search.ts';
import { signPayload } from '../../../src/web/docs/sign-payload.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

type Headers = Readonly<Record<string, string>>;

async function get(path: string, headers: Headers = {}, on: TestSandbox = sandbox) {
  const dispatcher: Agent = on.dispatcher;
  const answer = await dispatcher.request({ origin: on.baseUrl, path, method: 'GET', headers });
  return {
    status: answer.statusCode,
    headers: answer.headers,
    bytes: Buffer.from(await answer.body.arrayBuffer()),
  };
}

async function json<Value>(path: string, on: TestSandbox = sandbox): Promise<Value> {
  return JSON.parse((await get(path, {}, on)).bytes.toString()) as Value;
}

/** What "Send" does on the page of an operation, before the reader has changed anything. */
async function sendAsItIs(id: string, change: Partial<Record<string, string>> = {}, signer?: string) {
  const operation = await json<OperationDocument>(`/docs/operations/${id}.json`);
  const settings = await json<Settings>('/docs/settings.json');
  const [content] = Object.values(operation.requestBody?.content ?? {});
  const [example] = Object.values(content?.examples ?? {});
  const parameters = Object.fromEntries(
    operation.parameters.map((each) => [each.name, change[each.name] ?? firstValue(each, settings)]),
  );
  const body = example === undefined ? undefined : JSON.stringify(withIds(example.value, settings.ids));
  const filled = { parameters, body, userToken: '', ...settings.credentials! };
  const request = composeRequest(operation, filled, { origin: sandbox.baseUrl, prefix: settings.prefix });
  const key = settings.signers.find(({ name }) => name === signer)?.privateKey;
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: request.url.slice(sandbox.baseUrl.length),
    method: request.method as 'GET',
    headers: {
      ...request.headers,
      ...(key && { 'service-authorization-signature': await signPayload(request.payload, key) }),
    },
    ...(request.body === undefined ? {} : { body: request.body }),
  });
  return { status: answer.statusCode, body: await answer.body.text() };
}

describe('what the reference fills in', () => {
  test.each([
    ...['listWallets', 'getWallet', 'getApp', 'getUser', 'getPolicy', 'getKeyQuorum'],
    ...['createWallet', 'createPolicy', 'walletRpc', 'listIntents', 'createKeyQuorum'],
  ])('what the reference fills in: works as it is: %s', async (id) => {
    const { status, body } = await sendAsItIs(id);
    expect([status, status === 200 ? '' : body]).toEqual([200, '']);
  });

  test('what the reference fills in: signs as Alice, so that the server accepts it, also with the optional headers', async () => {
    const wallet_id = 'ext_wal_alice';
    expect((await sendAsItIs('walletRpc', { wallet_id })).status).toBe(401);
    expect((await sendAsItIs('walletRpc', { wallet_id }, 'Bob')).status).toBe(401);
    expect((await sendAsItIs('walletRpc', { wallet_id }, 'Alice')).status).toBe(200);
    const more = { wallet_id, 'service-idempotency-key': 'k1', 'service-request-expiry': '1767229200000' };
    expect((await sendAsItIs('walletRpc', more, 'Alice')).status).toBe(200);
  });

  test('what the reference fills in: contains no secret but the published ones', async () => {
    await using other = await startSandbox({ appSecret: 'a-secret-of-our-own', seedData: false });
    const settings = await json<Settings>('/docs/settings.json', other);
    expect(settings).toEqual({ prefix: 'service', caFile: other.caFile, signers: [], ids: {} });
  });
});

test('pages are compressed for clients that accept it', async () => {
  const plain = await get('/openapi.json');
  const small = await get('/openapi.json', { 'accept-encoding': 'br, gzip;q=0.8' });
  expect(small.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
  expect(gunzipSync(small.bytes).equals(plain.bytes)).toBe(true);
  expect(small.bytes.length).toBeLessThan(plain.bytes.length / 5);
  const refused = await get('/openapi.json', { 'accept-encoding': 'gzip;q=0' });
  expect(refused.headers['content-encoding']).toBeUndefined();
});

test('guides, script, style sheet and icon are served', async () => {
  for (const path of [
    '/docs',
    '/docs/guides/webhooks',
    '/docs/main.js',
    '/docs/docs.css',
    '/docs/icon.svg',
  ]) {
    expect([path, (await get(path)).status]).toEqual([path, 200]);
  }
});

test('a script of a web page gets a 401 without a challenge, so that the browser asks for no password', async () => {
  const challenged = await get('/v1/wallets');
  expect(challenged).toMatchObject({
    status: 401,
    headers: { 'www-authenticate': expect.stringMatching(/^Basic/) },
  });
  const browser = { 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' };
  const { status, headers } = await get('/v1/wallets', browser);
  expect([status, headers['www-authenticate']]).toEqual([401, undefined]);
});

describe('the pages of the documents', () => {
  const resourceTypes: Readonly<Record<string, RegExp>> = {
    css: /^text\/css/,
    js: /^text\/javascript/,
    json: /^application\/json/,
    png: /^image\/png/,
    svg: /^image\/svg\+xml/,
  };

  test('each one loads with every resource that it names', async () => {
    const start = (await get('/docs')).bytes.toString();
    const paths = new Set([...start.matchAll(/href="(\/docs\/[\w/-]+)"/g)].map(([, path]) => path!));
    expect(paths.size).toBeGreaterThan(15);
    const seen = new Set<string>();
    for (const path of ['/docs', ...paths]) {
      const page = await get(path);
      expect([path, page.status, page.headers['content-type']]).toEqual([
        path,
        200,
        'text/html; charset=utf-8',
      ]);
      const html = page.bytes.toString();
      const named = [
        ...html.matchAll(/<(?:img|script|source|iframe|video)[^>]*\ssrc="([^"]+)"/g),
        ...html.matchAll(/<link[^>]*\shref="([^"]+)"/g),
        ...html.matchAll(/\shref="([^"]+\.(?:json|css|js|png|svg))"/g),
      ];
      for (const [, target] of named) {
        const url = new URL(target!, `${sandbox.baseUrl}${path}`);
        if (seen.has(url.href)) continue;
        seen.add(url.href);
        expect([path, url.origin]).toEqual([path, sandbox.baseUrl]);
        const { status, headers } = await get(url.pathname);
        expect([path, url.pathname, status]).toEqual([path, url.pathname, 200]);
        expect(headers['content-type']).toMatch(
          resourceTypes[/\.(\w+)$/.exec(url.pathname)?.[1] ?? ''] ?? /never/,
        );
      }
    }
    expect(seen.size).toBeGreaterThan(2);
  });

  test('the pages of the documents name the address, the certificate authority and the app of this sandbox', async () => {
    await using own = await startSandbox({ appId: 'anotherapp00000000000000', prefix: 'acme' });
    const guides = ['/docs/guides/first-request', '/docs/webhooks', '/docs/guides/going-to-production'];
    for (const path of guides) {
      const text = (await get(path, {}, own)).bytes.toString();
      expect(text).toContain(`${own.baseUrl}/`);
      expect(text).toContain(own.caFile);
      expect(text).not.toMatch(/127\.0\.0\.1:4010|(?<![\w/-])\.custos\/ca\.pem|custossandboxapp/);
    }
    const last = (await get(guides[2]!, {}, own)).bytes.toString();
    expect(last).toContain('/_sandbox/apps/anotherapp00000000000000');
  });

  test.each([
    ['faucet', /control-plane#fundaddress|sandbox#/],
    ['clock', /control-plane#setclock/],
    ['spending', /guides\/policies|policies#|monitoring#/],
    ['policy_violation', /^errors\/policy_violation#/],
    ['create wallet', /^#\/wallets\/createWallet$/],
    ['wallet.archived', /^#\/webhooks\/onWalletArchived$/],
    ['CUSTOS_DATABASE_POOL', /^reference\/settings#custos_database_pool$/],
    ['insufficient_funds', /^errors\/insufficient_funds#/],
    ['jwt', /reference\/settings#/],
    ['CORS', /sandbox#web-pages/],
    ['webhook retry', /webhooks#/],
  ])('the search finds `%s`', async (words, href) => {
    const found = createSearch(await json<SearchEntry[]>('/docs/search.json'))(words).map(
      ({ entry }) => entry,
    );
    expect(found.map((entry) => entry.href).filter((each) => href.test(each))).not.toEqual([]);
    for (const { href: target } of found) {
      const [, operation] = /^#\/[\w-]+\/(\w+)$/.exec(target) ?? [];
      if (operation !== undefined) {
        expect((await get(`/docs/operations/${operation}.json`)).status).toBe(200);
        continue;
      }
      const [path, anchor] = target.split('#');
      expect((await get(`/docs/${path}`)).bytes.toString()).toContain(` id="${anchor}"`);
    }
  });
});
