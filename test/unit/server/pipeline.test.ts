import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../src/errors.ts';
import type { AnsweredRequest } from '../../../src/ports/requests.ts';
import { MAX_BODY_BYTES } from '../../../src/server/read-body.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import { appHeaders, echo, noonMs, startToyServer, type ToyServer, toyApp } from './toy-server.ts';

const app = { id: toyApp.id };
const json = { ...appHeaders, 'content-type': 'application/json' };

test('a request passes all steps and gets its response', async () => {
  await using server = await startToyServer();
  const { status, headers, body } = await server.fetch('POST', '/v1/toys?x=1', {
    headers: json,
    body: '{"name":"bear","colour":"red"}',
  });
  expect({ status, body }).toEqual({
    status: 200,
    body: { operation: 'createToy', path: {}, query: { x: '1' }, body: { name: 'bear', colour: 'red' }, app },
  });
  expect(Object.fromEntries(headers)).toEqual({
    'cache-control': 'no-store',
    connection: 'keep-alive',
    'content-length': expect.any(String),
    'content-type': 'application/json; charset=utf-8',
    date: expect.any(String),
    'keep-alive': expect.any(String),
    'x-content-type-options': 'nosniff',
    'x-request-id': 'request-1',
  });
});

test('a response without a body is empty', async () => {
  await using server = await startToyServer({ run: async () => ({ status: 204 }) });
  const { status, headers, text } = await server.fetch('DELETE', '/v1/toys/bear');
  expect({ status, text, type: headers.get('content-type') }).toEqual({ status: 204, text: '', type: null });
});

describe('the order of the steps', () => {
  const cases: [
    what: string,
    method: string,
    path: string,
    options: Parameters<ToyServer['fetch']>[2],
    status: number,
  ][] = [
    [
      'too large, unknown path, no credentials',
      'POST',
      '/v1/games',
      { headers: {}, body: 'x'.repeat(MAX_BODY_BYTES + 1) },
      401,
    ],
    ['too large', 'POST', '/v1/toys', { headers: json, body: 'x'.repeat(MAX_BODY_BYTES + 1) }, 413],
    ['unknown path, no credentials', 'GET', '/v1/games', { headers: {} }, 401],
    ['unknown path', 'GET', '/v1/games', {}, 404],
    ['wrong method, no credentials', 'PUT', '/v1/toys', { headers: {} }, 401],
    ['wrong method', 'PUT', '/v1/toys', {}, 405],
    [
      'broken body, no credentials',
      'POST',
      '/v1/toys',
      { headers: { 'content-type': 'application/json' }, body: '{' },
      401,
    ],
    ['wrong type and broken body', 'POST', '/v1/toys', { body: '{' }, 415],
    ['broken body', 'POST', '/v1/toys', { headers: json, body: '{' }, 400],
    [
      'expired and invalid',
      'POST',
      '/v1/toys',
      { headers: { ...json, 'service-request-expiry': '1' }, body: '{}' },
      400,
    ],
  ];
  test.each(cases)('the order of the steps: %s', async (_what, method, path, options, status) => {
    await using server = await startToyServer({ run: () => expect.unreachable('the operation was run') });
    const answer = await server.fetch(method, path, options);
    expect(answer.status).toBe(status);
    expect(answer.body).toHaveProperty('error');
    expect(answer.headers.get('x-request-id')).toBe('request-1');
  });

  test('validation comes before the expiry, the expiry before the operation', async () => {
    await using server = await startToyServer({ run: () => expect.unreachable('the operation was run') });
    const headers = { ...json, 'service-request-expiry': String(noonMs - 1) };
    expect((await server.fetch('POST', '/v1/toys', { headers, body: '{}' })).body).toMatchObject({
      code: 'invalid_data',
    });
    const expired = await server.fetch('POST', '/v1/toys', { headers, body: '{"name":"a"}' });
    expect(expired.body).toMatchObject({ code: 'request_expired' });
    // The time by which the server judged, so that a client can correct its clock.
    expect(expired.headers.get('date')).toBe(new Date(noonMs).toUTCString());
  });
});

describe('the body', () => {
  test('of exactly 1 MB passes, of one byte more is refused', async () => {
    await using server = await startToyServer({
      run: async ({ rawBody }) => ({ status: 200, body: rawBody.length }),
    });
    const ofSize = (size: number) => `{"name":"${'x'.repeat(size - '{"name":""}'.length)}"}`;
    const most = await server.fetch('POST', '/v1/toys', { headers: json, body: ofSize(MAX_BODY_BYTES) });
    expect(most.body).toBe(MAX_BODY_BYTES);
    const more = await server.fetch('POST', '/v1/toys', { headers: json, body: ofSize(MAX_BODY_BYTES + 1) });
    expect({ status: more.status, body: more.body }).toEqual({
      status: 413,
      body: { error: 'request body is larger than 1 MB' },
    });
  });

  test('that is too large is refused even without a declared size', async () => {
    await using server = await startToyServer();
    const stream = new ReadableStream({
      start(controller) {
        for (let chunk = 0; chunk < 40; chunk += 1) controller.enqueue(new Uint8Array(50_000));
        controller.close();
      },
    });
    // Without a length, in chunks, which supertest cannot send.
    const sent = { method: 'POST', headers: json, body: stream, duplex: 'half' } as RequestInit;
    expect((await fetch(`${server.url}/v1/toys`, sent)).status).toBe(413);
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  });

  test('the body that is never completed only closes the connection', async () => {
    const run = () => expect.unreachable('the operation was run');
    const records: AnsweredRequest[] = [];
    await using server = await startToyServer({ run, record: (answered) => void records.push(answered) });
    const request = httpRequest(`${server.url}/v1/toys`, {
      method: 'POST',
      headers: { ...json, 'content-length': 100 },
    });
    request.on('error', () => undefined);
    request.write('{"name":');
    await new Promise((resolve) => setTimeout(resolve, 50));
    request.destroy();
    await expect
      .poll(() => server.log.lines)
      .toEqual([
        {
          level: 'info',
          fields: { request_id: 'request-1' },
          message: 'the client closed the connection before the request was complete',
        },
      ]);
    const why = { evidence: { effect: 'client_left' }, hint: expect.stringContaining('executed nothing.') };
    expect(records).toMatchObject([{ status: 0, code: undefined, responseText: undefined, why }]);
  });
});

describe('errors', () => {
  test('errors of the domain are returned as they are', async () => {
    const refusal = new ApiError('resource_conflict', undefined, {
      data: { hint: 1 },
      headers: { 'x-extra': 'y' },
    });
    await using server = await startToyServer({ run: () => Promise.reject(refusal) });
    const { status, headers, body } = await server.fetch('GET', '/v1/toys');
    expect({ status, body }).toEqual({
      status: 409,
      body: {
        error: 'Conflict encountered while trying to modify resource.',
        code: 'resource_conflict',
        data: { hint: 1 },
      },
    });
    expect(headers.get('x-should-retry')).toBe('false');
    expect(headers.get('x-extra')).toBe('y');
  });

  test('that are internal are returned with the request id and logged with their cause', async () => {
    const bug = new Error('select secret from wallets: no such column');
    await using server = await startToyServer({ run: () => Promise.reject(bug) });
    const { status, body } = await server.fetch('GET', '/v1/toys');
    expect({ status, body }).toEqual({
      status: 500,
      body: { error: 'Service unavailable.', data: { request_id: 'request-1' } },
    });
    expect(server.log.lines).toContainEqual({
      level: 'error',
      fields: { request_id: 'request-1', err: bug },
      message: 'request failed with an internal error',
    });
  });

  test('errors of credentials name the required scheme', async () => {
    await using server = await startToyServer();
    const { headers } = await server.fetch('GET', '/v1/toys', { headers: {} });
    expect(headers.get('www-authenticate')).toBe('Basic realm="custos", charset="UTF-8"');
  });
});

test('each request has one log line without secrets', async () => {
  await using server = await startToyServer();
  await server.fetch('POST', '/v1/toys?token=hush', {
    headers: { ...json, 'service-authorization-signature': 'signed-hush' },
    body: '{"name":"hush"}',
  });
  expect(server.log.lines).toEqual([
    {
      level: 'info',
      fields: {
        request_id: 'request-1',
        operation: 'createToy',
        app: toyApp.id,
        status: 200,
        duration_ms: expect.any(Number),
      },
      message: 'request',
    },
  ]);
});

test('of the requests without an error, the given share is logged, of the others all', async () => {
  await using server = await startToyServer({ loggedShare: 0.25 });
  for (let count = 0; count < 8; count += 1) await server.fetch('GET', '/v1/toys');
  for (let count = 0; count < 3; count += 1) await server.fetch('GET', '/v1/toys?limit=x');
  const statuses = server.log.lines.map(({ fields }) => fields.status);
  expect(statuses).toEqual([200, 200, 400, 400, 400]);
});

test('every answered request is observed under the name of its operation', async () => {
  const seen: unknown[] = [];
  await using server = await startToyServer({
    observe: (operation, status) => seen.push([operation, status]),
  });
  await server.fetch('GET', '/v1/toys');
  await server.fetch('GET', '/v1/toys?limit=x');
  await server.fetch('GET', '/v1/games');
  expect(seen).toEqual([
    ['listToys', 200],
    ['listToys', 400],
    ['none', 404],
  ]);
});

describe('the proof', () => {
  const decode = (state: RequestState) =>
    state.proof!.canonicalPayloads().map((bytes) => new TextDecoder().decode(bytes));

  test('the proof contains the signatures, the expiry and every payload that a client may have signed', async () => {
    const run = async (state: RequestState) => ({
      status: 200,
      body: { ...state.proof, payloads: decode(state) },
    });
    await using server = await startToyServer({ run, publicBaseUrls: () => ['https://toys.example'] });
    const headers = {
      ...json,
      'service-authorization-signature': ' one, ,two ',
      'service-request-expiry': String(noonMs),
      'service-idempotency-key': 'key-1',
    };
    const { body } = await server.fetch('POST', '/api/v1/toys/', {
      headers,
      body: '{ "name": "b", "colour":"red" }',
    });
    const payload = (url: string) =>
      `{"body":{"colour":"red","name":"b"},"headers":{"service-app-id":"${toyApp.id}","service-idempotency-key":"key-1","service-request-expiry":"${noonMs}"},"method":"POST","url":"${url}","version":1}`;
    expect(body).toEqual({
      signatures: ['one', 'two'],
      expiryMs: noonMs,
      payloads: [payload(`${server.url}/api/v1/toys`), payload('https://toys.example/api/v1/toys')],
    });
  });

  test('the proof contains configured public URLs only where the host does not count, the one that the request names first', async () => {
    const run = async (state: RequestState) => ({
      status: 200,
      body: [state.proof!.urlOf('/v1/toys'), ...decode(state).map((text) => JSON.parse(text).url)],
    });
    const configured = ['http://toys.example', 'http://play.example'];
    const publicBaseUrls = () => configured;
    await using server = await startToyServer({ run, publicBaseUrls, isHostSigned: false });
    const urlsUnder = async (host: string) => {
      const headers = { ...json, host };
      return (await server.fetch('POST', '/v1/toys', { headers, body: '{"name":"b"}' })).body;
    };
    const [first, second] = configured.map((base) => `${base}/v1/toys`);
    expect(await urlsUnder('another.example')).toEqual([first, first, second]);
    expect(await urlsUnder('play.example')).toEqual([second, second, first]);
    expect(await urlsUnder('play.example:8080')).toEqual([first, first, second]);
  });

  test('the proof of a request without a body has three forms', async () => {
    const run = async (state: RequestState) => ({ status: 200, body: decode(state) });
    await using server = await startToyServer({ run });
    const { body } = await server.fetch('DELETE', '/v1/toys/bear', { headers: json, body: '{}' });
    const rest = `"headers":{"service-app-id":"${toyApp.id}"},"method":"DELETE","url":"${server.url}/v1/toys/bear","version":1}`;
    expect(body).toEqual([`{"body":"",${rest}`, `{${rest}`, `{"body":{},${rest}`]);
  });

  test('of a body without a canonical form is a refusal, not an internal error', async () => {
    const run = async (state: RequestState) => ({ status: 200, body: decode(state) });
    await using server = await startToyServer({ run });
    const { status, body } = await server.fetch('POST', '/v1/toys', {
      headers: json,
      body: '{"name":"\\ud800"}',
    });
    expect({ status, body }).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  });

  test('the proof is refused with too many signatures', async () => {
    await using server = await startToyServer();
    const signatures = Array.from({ length: 101 }, () => 's').join(',');
    const { status, body } = await server.fetch('DELETE', '/v1/toys/bear', {
      headers: { ...appHeaders, 'service-authorization-signature': signatures },
    });
    expect({ status, body }).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  });

  test.each(['', 'soon', '-1', '1.5', '1e15', String(noonMs - 1)])(
    'the proof is refused with the expiry `%s`, signed or not',
    async (expiry) => {
      await using server = await startToyServer();
      const { status, body } = await server.fetch('GET', '/v1/toys', {
        headers: { ...appHeaders, 'service-request-expiry': expiry },
      });
      expect({ status, body }).toMatchObject({ status: 400, body: { code: 'request_expired' } });
    },
  );
});

describe('plain HTTP', () => {
  const refused = { status: 403, body: { error: 'HTTPS is required.' } };

  test('plain HTTP: is refused by default', async () => {
    await using server = await startToyServer({ transport: { plainHttp: false, trustedProxies: [] } });
    expect(await server.fetch('GET', '/v1/toys')).toMatchObject(refused);
    const headers = { ...appHeaders, 'x-forwarded-proto': 'https' };
    expect(await server.fetch('GET', '/v1/toys', { headers })).toMatchObject(refused);
  });

  test.each(['127.0.0.1', '127.0.0.0/8'])(
    'plain HTTP: is accepted from the proxy %s that received it by HTTPS',
    async (proxy) => {
      await using server = await startToyServer({ transport: { plainHttp: false, trustedProxies: [proxy] } });
      const headers = { ...appHeaders, 'x-forwarded-proto': 'https' };
      expect(await server.fetch('GET', '/v1/toys', { headers })).toMatchObject({ status: 200 });
      expect(await server.fetch('GET', '/v1/toys')).toMatchObject(refused);
      // The last item is the proxy's own; those before it may be forged.
      const forged = { ...appHeaders, 'x-forwarded-proto': 'https, http' };
      expect(await server.fetch('GET', '/v1/toys', { headers: forged })).toMatchObject(refused);
    },
  );

  test('behind a proxy counts as HTTPS in the signed URL', async () => {
    const run = async (state: RequestState) => ({
      status: 200,
      body: JSON.parse(new TextDecoder().decode(state.proof!.canonicalPayloads()[0])).url,
    });
    await using server = await startToyServer({
      run,
      transport: { plainHttp: false, trustedProxies: ['127.0.0.1'] },
    });
    const headers = { ...appHeaders, 'x-forwarded-proto': 'https' };
    expect((await server.fetch('GET', '/v1/toys', { headers })).body).toBe(
      `${server.url.replace('http', 'https')}/v1/toys`,
    );
  });
});

test('concurrent requests are isolated', async () => {
  await using server = await startToyServer({
    run: async (state) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return echo(state);
    },
  });
  const names = Array.from({ length: 50 }, (_, index) => `toy-${index}`);
  const answers = await Promise.all(names.map((name) => server.fetch('GET', `/v1/toys/${name}`)));
  expect(answers.map(({ body }) => (body as { path: { toy_id: string } }).path.toy_id)).toEqual(names);
  expect(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size).toBe(names.length);
});

test('a record or an explanation that fails costs the client nothing', async () => {
  const fail = (): never => {
    throw new Error('out of memory');
  };
  await using server = await startToyServer({
    record: fail,
    refusals: { explain: fail, isHintSent: true },
  });
  expect((await server.fetch('GET', '/v1/games')).status).toBe(404);
  expect((await server.fetch('POST', '/v1/toys', { headers: json, body: '{"name":"bear"}' })).status).toBe(
    200,
  );
  const failures = server.log.lines.filter(
    ({ message }) => message === 'failed to explain or record a request',
  );
  expect(failures).toHaveLength(3);
});

test('a client that leaves before its response is recorded without one', async () => {
  const records: AnsweredRequest[] = [];
  const running = Promise.withResolvers<void>();
  await using server = await startToyServer({
    async run(state) {
      running.resolve();
      await once(state.response, 'close');
      return echo(state);
    },
    record: (answered) => void records.push(answered),
  });
  const body = '{"name":"bear"}';
  const headers = { ...json, 'content-length': body.length };
  const request = httpRequest(`${server.url}/v1/toys`, { method: 'POST', headers });
  request.on('error', () => undefined);
  request.end(body);
  await running.promise;
  request.destroy();
  await expect.poll(() => records.length, { timeout: 30_000 }).toBe(1);
  const [record] = records;
  expect(record).toMatchObject({ status: 0, code: undefined, responseHeaders: [], responseText: undefined });
  expect(record!.why).toMatchObject({ kind: 'fault', evidence: { effect: 'client_left' } });
  expect(record!.why!.hint).toMatch(
    /^The client closed the connection after \d+ ms, before the response\. The request ended with the status 200\./,
  );
});

test('a server in production says that it has HTTPS only, and only over HTTPS', async () => {
  const header = 'strict-transport-security';
  await using sandbox = await startToyServer();
  expect((await sandbox.fetch('GET', '/v1/games')).headers.get(header)).toBeNull();
  const transport = { plainHttp: false, trustedProxies: ['127.0.0.1'], strictTransport: true };
  await using production = await startToyServer({ transport });
  const secure = await production.fetch('GET', '/v1/games', {
    headers: { ...appHeaders, 'x-forwarded-proto': 'https' },
  });
  expect([secure.status, secure.headers.get(header)]).toEqual([404, 'max-age=31536000']);
  const plain = await production.fetch('GET', '/v1/games');
  expect(plain.status).toBe(403);
  expect(plain.headers.get(header)).toBeNull();
  for (const { headers } of [secure, plain]) expect(headers.get('x-content-type-options')).toBe('nosniff');
});
