import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { operations } from '../../../src/generated/operations.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Node reads the first of several `authorization` or `host` headers; a proxy in front may read the last.

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const credentials = (secret: string): string =>
  `authorization: Basic ${Buffer.from(`${sandbox.appId}:${secret}`).toString('base64')}`;

/** Sends exactly these header lines and reads the response. */
async function send(method: string, path: string, lines: readonly string[]) {
  const { hostname, port } = new URL(sandbox.baseUrl);
  const socket = connect({ host: hostname, port: Number(port), ca: sandbox.caPem });
  const all = [`service-app-id: ${sandbox.appId}`, 'connection: close', ...lines];
  socket.write(`${method} ${path} HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n`);
  const text = (await socket.setEncoding('utf8').toArray()).join('');
  const [head = '', body = ''] = text.split('\r\n\r\n');
  expect(head).toMatch(/\r\nx-request-id: \S+/i);
  return { status: Number(head.split(' ')[1]), head, body };
}

const host = 'host: 127.0.0.1';
const twice = (name: string) => ({
  error: `\`${name}\`: expected it once, got it more than once`,
  code: 'invalid_data',
  data: {
    issues: [{ in: 'header', pointer: `/${name}`, message: 'expected it once, got it more than once' }],
  },
});

test.each([
  ['authorization', () => [host, credentials(sandbox.appSecret), credentials('other')]],
  ['authorization', () => [host, credentials('other'), credentials(sandbox.appSecret)]],
  [
    'authorization',
    () => [host, credentials(sandbox.appSecret), credentials(sandbox.appSecret).toUpperCase()],
  ],
  ['host', () => [host, credentials(sandbox.appSecret), 'Host: wallets.example']],
  ['host', () => [host, host, credentials(sandbox.appSecret)]],
])('a second `%s` is refused', async (name, lines) => {
  const answer = await send('GET', '/v1/wallets', lines());
  expect([answer.status, JSON.parse(answer.body)]).toEqual([400, twice(name)]);
});

test('other headers of the same length, and one of each, pass', async () => {
  const once = [
    host,
    credentials(sandbox.appSecret),
    'from: a',
    'from: b',
    'x-thirteen-ab: c',
    'x-thirteen-ab: d',
  ];
  expect((await send('GET', '/v1/wallets', once)).status).toBe(200);
});

test('every operation documents the refusal', async () => {
  const document = await sandbox.document();
  for (const methods of Object.values(document.paths)) {
    for (const { operationId, responses } of Object.values(methods)) {
      const { examples } = responses['400']?.content?.['application/json'] ?? {};
      expect(Object.keys(examples ?? {}), operationId).toContain('invalid_data');
    }
  }
  // These have no input that could be invalid otherwise.
  const others = ['authorizeOauthDevice', 'listOauthGrants', 'getOauthMetadata'] as const;
  for (const id of ['getCryptoDepositConfig' as const, ...others]) {
    const { method, path } = operations[id];
    const { status, body } = await send(method, path, [host, host]);
    expect([status, JSON.parse(body)], id).toEqual([400, twice('host')]);
  }
});

test('HEAD is GET without the content of the response', async () => {
  const lines = [host, credentials(sandbox.appSecret)];
  const headersOf = (head: string) =>
    head.replaceAll(/\r\n(x-request-id|date|x-ratelimit[^:]*): [^\r]*/gi, '').replace('HTTP/1.1 ', '');
  for (const path of ['/v1/wallets', '/v1/wallets/fmfdj6yqly31huorjqzq38zc']) {
    const [read, asked] = [await send('GET', path, lines), await send('HEAD', path, lines)];
    expect([asked.body, headersOf(asked.head)]).toEqual(['', headersOf(read.head)]);
    expect(read.body.length).toBeGreaterThan(10);
  }
  expect((await send('HEAD', '/v1/wallets', [host])).status).toBe(401);
  const posted = await send('HEAD', '/v1/wallets/fmfdj6yqly31huorjqzq38zc/rpc', lines);
  expect([posted.status, posted.body]).toEqual([405, '']);
});

test('reads as many signatures as the document allows, and refuses more by name', async () => {
  // Empty signatures do not count.
  const answerTo = (length: number) =>
    send('POST', '/v1/wallets/ext_wal_alice/archive', [
      ...[host, credentials(sandbox.appSecret), 'content-length: 0'],
      `service-authorization-signature: ${','.repeat(length)}`,
    ]);
  expect(await answerTo(16_384)).toMatchObject({ status: 200 });
  const { status, body } = await answerTo(16_385);
  expect({ status, ...JSON.parse(body) }).toMatchObject({
    ...{ status: 400, code: 'invalid_data' },
    data: { issues: [{ pointer: '/service-authorization-signature' }] },
  });
});
