import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { Agent } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { type RunningVerifier, startVerifier, type VerifyOptions } from '../../../src/compose/verify.ts';
import { startComparison } from '../../../src/tools/verify/comparison.ts';
import type { SeenExchange } from '../../../src/tools/verify/judge-exchange.ts';
import { readDocument } from '../../ledger/documented.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { call } from '../../support/call.ts';
import { runCommand, serveCustos, startCustos, waitFor } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Some servers here break the contract on purpose.
pauseRecording();

const document = readDocument();
let sandbox: TestSandbox;
let folder: string;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  sandbox = await startSandbox();
  folder = mkdtempSync(join(tmpdir(), 'custos-verify-'));
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sandbox[Symbol.asyncDispose]();
});

const ofSandbox = () => ({ url: new URL(sandbox.baseUrl), ca: sandbox.caPem, host: undefined });

async function verify(options: Partial<VerifyOptions>) {
  const verifier = await startVerifier({
    ...{ host: '127.0.0.1', port: 0, document, sandbox: undefined },
    ...{ target: ofSandbox(), ...options },
  });
  const dispatcher = new Agent({ connect: { ca: readFileSync(verifier.caFile, 'utf8') } });
  closing.push(
    () => dispatcher.destroy(),
    () => verifier.close(),
  );
  return { verifier, dispatcher };
}

async function send(
  { verifier, dispatcher }: { verifier: Pick<RunningVerifier, 'url'>; dispatcher: Agent },
  method: 'GET' | 'POST',
  path: string,
  body?: object,
) {
  const credentials = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
  const answer = await dispatcher.request({
    ...{ origin: verifier.url, path, method },
    headers: {
      authorization: `Basic ${credentials}`,
      'service-app-id': sandbox.appId,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, body: text === '' ? undefined : JSON.parse(text) };
}

const found = (verifier: RunningVerifier) =>
  verifier.verification().findings.map(({ rule, place, message }) => `${rule} ${place}: ${message}`);

/** A server that answers everything alike. */
function startLiar(status: number, body: unknown, path = ''): Promise<VerifyOptions['target']> {
  const headers = {
    ...{ 'content-type': 'application/json', 'www-authenticate': 'Basic' },
    'retry-after': '1',
  };
  return startServer(status, headers, Buffer.from(JSON.stringify(body)), path);
}

async function startServer(
  status: number,
  headers: Record<string, string>,
  body: Buffer,
  path = '',
): Promise<VerifyOptions['target']> {
  const server: Server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}${path}`), ca: undefined, host: undefined };
}

describe('a server that keeps the contract', () => {
  test('a server that keeps the contract has no findings, whatever it answers; signed requests pass unchanged', async () => {
    const { verifier, dispatcher } = await verify({});
    const behind = { ...sandbox, baseUrl: verifier.url, dispatcher };
    const body = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const;
    const path = { wallet_id: 'ext_wal_alice' };
    await call(behind, 'walletRpc', { path, body }, { signWith: [aliceKey.privateKey] });
    await call(behind, 'listWallets', { query: { limit: 2 } });
    expect(await send({ verifier, dispatcher }, 'POST', '/v1/wallets', { chain_tipe: 'x' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
    expect(await send({ verifier, dispatcher }, 'GET', '/v1/wallets/absent')).toMatchObject({ status: 404 });
    expect(await send({ verifier, dispatcher }, 'GET', '/v1/nothing')).toMatchObject({ status: 404 });
    expect(found(verifier)).toEqual([]);
    expect(verifier.verification()).toMatchObject({ requests: 5, judged: 4 });
  });

  test('a server that keeps the contract is recorded without secrets, and answers like a sandbox', async () => {
    await using other = await startSandbox();
    const started = await verify({
      sandbox: { url: new URL(other.baseUrl), ca: other.caPem, host: undefined },
    });
    await send(started, 'POST', '/v1/wallets', { chain_type: 'ethereum' });
    await send(started, 'GET', '/v1/wallets/ext_wal_alice');
    const archive = JSON.stringify(await started.verifier.archive());
    expect(archive).toContain('"_operationId":"createWallet"');
    expect(archive).not.toContain(Buffer.from(`${sandbox.appId}:`).toString('base64').slice(0, 20));
    await started.verifier.close();
    expect(found(started.verifier)).toEqual([]);
  });
});

describe('a server that breaks the contract', () => {
  const finding = async (status: number, body: unknown, path = '/v1/wallets/w', sent?: object) => {
    const started = await verify({ target: await startLiar(status, body) });
    await send(started, sent === undefined ? 'GET' : 'POST', path, sent);
    return found(started.verifier);
  };

  test('a server that breaks the contract is found out by its statuses, codes and bodies', async () => {
    expect(await finding(418, {})).toEqual([
      expect.stringMatching(/^status-undocumented getWallet 418: expected 200, 400, .*, got 418$/),
    ]);
    expect(await finding(404, { error: 'no', code: 'lost' })).toContainEqual(
      expect.stringMatching(/^code-undocumented getWallet 404: expected one of .*, got `lost`$/),
    );
    expect(await finding(404, { message: 'no' })).toEqual([
      'response-invalid getWallet 404: /error: is required',
    ]);
    expect(await finding(200, { id: 1 })).toEqual([
      expect.stringMatching(/^response-invalid getWallet 200: \//),
    ]);
    expect(await finding(200, {}, '/v1/secrets')).toEqual([
      'undocumented-path GET /v1/secrets: expected 404 or 405 for a request that is not an operation, got 200',
    ]);
  });

  test('a server that breaks the contract is found out when it accepts what it must refuse, or refuses what it must accept', async () => {
    const body = { id: 'w' };
    expect(await finding(200, body, '/v1/wallets', { chain_tipe: 'x' })).toContainEqual(
      expect.stringMatching(/^request-invalid createWallet 200: \/chain_t(y|i)pe: /),
    );
    const refusal = { error: 'chain_type: I do not like it', code: 'invalid_data' };
    expect(await finding(400, refusal, '/v1/wallets', { chain_type: 'ethereum' })).toEqual([
      'request-refused createWallet 400: chain_type: I do not like it',
    ]);
  });

  test('a server that breaks the contract is compared with a sandbox', async () => {
    const refusal = { error: 'Wallet not found', code: 'not_found' };
    const started = await verify({ target: await startLiar(404, refusal), sandbox: ofSandbox() });
    await send(started, 'GET', '/v1/wallets/ext_wal_alice');
    await started.verifier.close();
    expect(found(started.verifier)).toContainEqual(
      'sandbox-differs getWallet 404: the status is 404, in the sandbox 200',
    );
  });
});

describe('a response in a content coding', () => {
  const wallet = { error: 'Wallet not found', code: 'not_found' };
  const plain = Buffer.from(JSON.stringify(wallet));
  const answer = async (encoding: string, body: Buffer) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    const started = await verify({ target: await startServer(404, headers, body) });
    const got = await started.dispatcher.request({
      ...{ origin: started.verifier.url, path: '/v1/wallets/w', method: 'GET' },
      headers: { authorization: 'Basic YTpi', 'service-app-id': 'a', 'accept-encoding': 'gzip' },
    });
    const bytes = Buffer.from(await got.body.arrayBuffer());
    await started.verifier.close();
    return { found: found(started.verifier), headers: got.headers, bytes };
  };

  test.each<[string, Buffer]>([
    ['gzip', gzipSync(plain)],
    ['X-GZIP', gzipSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['zstd', zstdCompressSync(plain)],
    ['deflate', deflateSync(plain)],
    // Without the zlib format around it, as some servers send it.
    ['deflate', deflateRawSync(plain)],
    ['identity', plain],
    ['br, gzip', gzipSync(brotliCompressSync(plain))],
  ])('%s is decoded before it is judged, and passed on as it is', async (encoding, body) => {
    const { found: findings, headers, bytes } = await answer(encoding, body);
    expect(findings).toEqual([]);
    expect(headers['content-encoding']).toBe(encoding);
    expect(bytes).toEqual(body);
  });

  test.each<[string, Buffer, RegExp]>([
    ['gzip', plain, /^response-invalid getWallet 404: expected a body in the coding gzip: /],
    ['gzip', gzipSync(plain).subarray(0, 20), /expected a body in the coding gzip: /],
    ['compress', plain, /expected one of gzip, .*, got `compress`$/],
    ['constructor', plain, /got `constructor`$/],
    ['gzip, gzip, gzip, gzip', plain, /expected at most 3 codings, got 4$/],
    // 100 MB of zeros in 100 KB.
    ['gzip', gzipSync(Buffer.alloc(100_000_000)), /expected a body of at most 67108864 bytes after gzip$/],
  ])('%s that cannot be decoded is a finding, and passed on as it is', async (encoding, body, finding) => {
    const { found: findings, bytes } = await answer(encoding, body);
    expect(findings).toEqual([expect.stringMatching(finding)]);
    expect(bytes).toEqual(body);
  });
});

describe('headers', () => {
  const answered = async (status: number, headers: Record<string, string>, code: string, sent = {}) => {
    const body = Buffer.from(JSON.stringify({ error: 'no', code }));
    const started = await verify({ target: await startServer(status, headers, body) });
    await started.dispatcher
      .request({ origin: started.verifier.url, path: '/v1/wallets/w', method: 'GET', headers: sent })
      .then((response) => response.body.dump());
    return found(started.verifier);
  };
  const json = { 'content-type': 'application/json; charset=utf-8' };

  test.each<[string, number, Record<string, string>, string, RegExp]>([
    ['no challenge', 401, json, 'missing_or_invalid_token', /401: www-authenticate: expected the scheme/],
    [
      'no time to wait',
      429,
      json,
      'too_many_requests',
      /429: retry-after: expected it, or retry-after-ms or/,
    ],
    ['no type', 404, {}, 'not_found', /404: content-type: expected `application\/json`, got none/],
    ['another type', 404, { 'content-type': 'text/html' }, 'not_found', /got `text\/html`/],
  ])('%s is a finding', async (_name, status, headers, code, finding) => {
    expect(await answered(status, headers, code)).toEqual([expect.stringMatching(finding)]);
    expect((await answered(status, headers, code))[0]).toMatch(/^header-missing getWallet/);
  });

  test('that are there, or that a browser must not get, are no finding', async () => {
    const token = 'missing_or_invalid_token';
    expect(await answered(401, { ...json, 'www-authenticate': 'Basic realm="x"' }, token)).toEqual([]);
    expect(await answered(401, json, token, { 'sec-fetch-mode': 'cors' })).toEqual([]);
    expect(await answered(429, { ...json, 'x-ratelimit-reset': '1' }, 'too_many_requests')).toEqual([]);
  });
});

test("a browser's preflight, and what needs credentials before its path is known, have no findings", async () => {
  const { verifier, dispatcher } = await verify({});
  const preflight = (path: string) =>
    dispatcher.request({
      ...{ origin: verifier.url, path, method: 'OPTIONS' },
      headers: {
        ...{ origin: 'http://localhost:3000', 'access-control-request-method': 'GET' },
        'access-control-request-headers': 'authorization,service-app-id',
      },
    });
  const opened = await preflight('/v1/cards');
  await opened.body.dump();
  expect(opened.statusCode).toBe(204);
  for (const path of ['/v1/wallets', '/nothing']) await (await preflight(path)).body.dump();
  const unknown = await dispatcher.request({ origin: verifier.url, path: '/v1/nothing', method: 'GET' });
  await unknown.body.dump();
  expect(unknown.statusCode).toBe(401);
  expect(found(verifier)).toEqual([]);
});

test('a sandbox is asked in the order of the requests, and what waits for it has a bound', async () => {
  let release: () => void = () => undefined;
  const seen: string[] = [];
  const server: Server = createServer((request, response) => {
    seen.push(String(request.url));
    const answer = (): void => void response.writeHead(404).end('{}');
    if (seen.length === 1) release = answer;
    else answer();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const reported: string[] = [];
  const comparison = startComparison(
    { url, ca: undefined, host: undefined },
    (findings, example) => {
      for (const { rule } of findings) reported.push(`${rule} ${example}`);
    },
    30,
  );
  const exchange = (target: string): SeenExchange => ({
    ...{ method: 'GET', target, requestHeaders: {}, requestBody: Buffer.alloc(0) },
    ...{ status: 404, responseHeaders: {}, responseBody: Buffer.from('{}') },
  });
  comparison.add(exchange('/first'), 'getWallet');
  for (let index = 0; index <= 30; index += 1) comparison.add(exchange(`/${index}`), 'getWallet');
  expect(reported).toEqual([`sandbox-skipped GET /30`]);
  await waitFor(() => seen.length === 1);
  release();
  await comparison.close();
  expect(seen).toEqual(['/first', ...Array.from({ length: 30 }, (_, index) => `/${index}`)]);
});

test('a server that cannot be reached is answered for, and reported', async () => {
  const started = await verify({
    target: { url: new URL('http://127.0.0.1:1'), ca: undefined, host: undefined },
  });
  expect(await send(started, 'GET', '/v1/wallets')).toMatchObject({ status: 502 });
  expect(found(started.verifier)).toEqual([expect.stringMatching(/^target-unreachable GET \/v1\/wallets: /)]);
});

test('a server with an unknown certificate authority is reported with the option that names it', async () => {
  // A process may trust the authority of its sandboxes.
  const { cert, key } = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
  const server = createHttpsServer({ cert, key });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const started = await verify({ target: { url, ca: undefined, host: undefined } });
  expect(await send(started, 'GET', '/v1/wallets')).toMatchObject({ status: 502 });
  expect(found(started.verifier)).toEqual([
    expect.stringMatching(/^target-unreachable .* certificate .*; --target-ca names/),
  ]);
});

describe('custos verify', () => {
  test('custos verify writes its reports when it is stopped, and fails if the contract was broken', async () => {
    const target = await startLiar(418, {});
    const file = (name: string) => join(folder, name);
    const custos = await startCustos([
      ...['verify', '--target', target.url.href, '--port', '0', '--ready-file', file('ready.json')],
      ...['--record', file('traffic.har'), '--format', `junit=${file('junit.xml')}`, '--format', 'text'],
    ]);
    await waitFor(() => existsSync(file('ready.json')) || custos.process.exitCode !== null);
    const ready = JSON.parse(readFileSync(file('ready.json'), 'utf8'));
    const dispatcher = new Agent({ connect: { ca: readFileSync(ready.ca_file, 'utf8') } });
    await send({ verifier: { url: ready.base_url }, dispatcher }, 'GET', '/v1/wallets/w');
    await dispatcher.destroy();
    const { code, stdout } = await custos.stop();
    expect(code).toBe(1);
    expect(stdout).toContain('1 request, 1 to operations of the contract: 1 error, 0 notices');
    expect(readFileSync(file('junit.xml'), 'utf8')).toContain('type="status-undocumented"');
    expect(JSON.parse(readFileSync(file('traffic.har'), 'utf8')).log.entries).toHaveLength(1);
  });

  test('trusts a sandbox of this machine, and other commands find the proxy by its ready file', async () => {
    await using target = await serveCustos(['sandbox', '--seed', 'verify', '--seed-data', '--quiet']);
    const readyFile = join(folder, 'proxy.json');
    const custos = await startCustos([
      ...['verify', '--target', target.ready.base_url, '--port', '0', '--ready-file', readyFile],
    ]);
    await waitFor(() => existsSync(readyFile) || custos.process.exitCode !== null);
    const signing = ['method=personal_sign', 'params.message=Hello', 'params.encoding=utf-8'];
    const called = await runCommand([
      ...['call', 'walletRpc', 'ext_wal_alice', '--sign', 'alice', ...signing, '--ready-file', readyFile],
    ]);
    expect(called).toMatchObject({ code: 0, stdout: expect.stringContaining('"signature": "0x') });
    expect(await custos.stop()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 request, 1 to operations of the contract: 0 errors, 0 notices'),
    });
  });

  test('custos verify refuses wrong options', async () => {
    expect((await runCommand(['verify'])).code).toBe(2);
    expect((await runCommand(['verify', '--target', 'here'])).code).toBe(2);
    expect((await runCommand(['verify', '--target', 'https://a', '--port', 'x'])).code).toBe(2);
    expect((await runCommand(['verify', '--target', 'https://a', '--target-ca', '/absent'])).code).toBe(2);
  });
});
