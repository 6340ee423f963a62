import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AddSandboxFaultRequest, SandboxFault } from '../../../src/sandbox/generated/schemas.ts';
import { startSandbox as startInProcess } from '../../../src/testing/testing.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { attempt, call, control, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Rules answer here in place of the operations.
pauseRecording();

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const ethereum = { body: { chain_type: 'ethereum' } } as const;

async function addFault(body: AddSandboxFaultRequest, on = sandbox): Promise<string> {
  const { status, body: added } = await control(on, 'POST', '/_sandbox/faults', body);
  expect({ status, added }).toMatchObject({ status: 200, added: { ...body, hits: 0 } });
  return String(added.id);
}

const hitsOf = async (id: string) => (await control(sandbox, 'GET', `/_sandbox/faults/${id}`)).body.hits;

/** The latest recorded request. */
async function last() {
  const { body } = await control(sandbox, 'GET', '/_sandbox/requests');
  const { id } = (body.data as { id: string }[]).at(-1)!;
  return (await control(sandbox, 'GET', `/_sandbox/requests/${id}`)).body;
}

async function walletCount(): Promise<number> {
  return (await call(sandbox, 'listWallets', { query: { limit: 100 } })).body.data.length;
}

describe('a rule for requests', () => {
  test('injects an error as the document shows it, as often as its count says', async () => {
    const id = await addFault({ effect: 'error', code: 'unavailable', operation: 'createWallet', count: 2 });
    const before = await walletCount();
    for (let time = 0; time < 2; time += 1) {
      expect(await refusal(sandbox, 'createWallet', ethereum)).toMatchObject({
        status: 503,
        body: { error: 'the service is temporarily unavailable' },
      });
    }
    expect(await last()).toMatchObject({
      status: 503,
      why: { kind: 'fault', evidence: { fault_id: id, effect: 'error' } },
      events: [],
    });
    expect(await walletCount()).toBe(before);
    await call(sandbox, 'createWallet', ethereum);
    expect(await hitsOf(id)).toBe(2);
  });

  test('answers with a response of its own, and does not execute the request', async () => {
    const before = await walletCount();
    const body = { error: 'closed for maintenance' };
    const headers = { 'Retry-After': '7', 'x-request-id': 'of-the-rule' };
    const id = await addFault({
      effect: 'respond',
      operation: 'createWallet',
      status: 503,
      headers,
      body,
      count: 1,
    });
    const sent = await attempt(sandbox, 'createWallet', ethereum);
    expect(sent).toMatchObject({
      status: 503,
      headers: { 'retry-after': '7', 'x-request-id': 'of-the-rule' },
    });
    // Without the hint, which would not be in the recording of another server.
    expect(sent.body).toEqual(body);
    expect(await last()).toMatchObject({
      status: 503,
      why: { kind: 'fault', evidence: { fault_id: id, effect: 'respond' } },
      events: [],
    });
    expect(await walletCount()).toBe(before);
    await call(sandbox, 'createWallet', ethereum);
  });

  test('compares a response with the document, unless the rule says otherwise', async () => {
    const add = (rule: Omit<AddSandboxFaultRequest, 'effect'>) =>
      control(sandbox, 'POST', '/_sandbox/faults', { effect: 'respond', ...rule });
    const refused: readonly (readonly [Omit<AddSandboxFaultRequest, 'effect'>, RegExp])[] = [
      [{ status: 503, body: {} }, /^\/operation: expected the operation whose document allows the response/],
      [{ operation: 'createWallet', status: 418 }, /^\/status: expected one of 200, 400, .*got `418`/],
      [{ operation: 'createWallet', body: { id: 1 } }, /^\/body\/\w+: /],
      [{ operation: 'createWallet', status: 503, body: { error: 1 } }, /^\/body\/error: must be a string/],
      [{ operation: 'createWallet', status: 503, headers: { 'content-length': '1' } }, /^\/headers: /],
      [{ operation: 'createWallet', status: 503, headers: { a: 'b\r\nc: d' } }, /^\/headers\/a: /],
    ];
    for (const [rule, message] of refused) {
      const { status, body } = await add(rule);
      expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringMatching(message) });
    }
  });

  test('may break the document: a text is sent as it is, and a response may have no body', async () => {
    await using own = await startInProcess({ seedData: false });
    const ask = () =>
      own.fetch(`${own.baseUrl}/v1/wallets`, {
        headers: {
          authorization: `Basic ${btoa(`${own.appId}:${own.appSecret}`)}`,
          'service-app-id': own.appId,
        },
      });
    const headers = { 'content-type': 'text/html' };
    const page = '<h1>Bad gateway</h1>';
    await own.faults.add({
      effect: 'respond',
      status: 502,
      headers,
      body: page,
      is_undocumented: true,
      count: 1,
    });
    const broken = await ask();
    expect([broken.status, broken.headers.get('content-type'), await broken.text()]).toEqual([
      ...[502, 'text/html', page],
    ]);
    await own.faults.add({ effect: 'respond', status: 204, is_undocumented: true, count: 1 });
    const empty = await ask();
    expect([empty.status, await empty.text()]).toEqual([204, '']);
    expect((await ask()).status).toBe(200);
  });

  test.each([
    [201, 'created'],
    [201, null],
    [503, { error: 'away', data: null }],
    [503, { error: 'away', data: 'none' }],
  ])('records a response %i with the body %j in place of one of the API', async (status, body) => {
    const rule = { effect: 'respond', operation: 'createWallet', status, is_undocumented: true } as const;
    await addFault({ ...rule, body, count: 1 });
    const { appId, appSecret } = sandbox;
    // Not by `attempt`, which compares each response with the document.
    const sent = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: '/v1/wallets', method: 'POST' },
      headers: {
        authorization: `Basic ${btoa(`${appId}:${appSecret}`)}`,
        ...{ 'service-app-id': appId, 'content-type': 'application/json' },
      },
      body: JSON.stringify(ethereum.body),
    });
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    expect([sent.statusCode, await sent.body.text()]).toEqual([status, text]);
    expect(await last()).toMatchObject({ operation: 'createWallet', status, subject: null });
  });

  test('knows a wallet by both of its ids, and no other wallet whose id begins alike', async () => {
    const { id } = (await call(sandbox, 'getWallet', { path: acme })).body;
    const near = { chain_type: 'ethereum', external_id: 'acme-ethereum-2' } as const;
    await call(sandbox, 'createWallet', { body: near });
    for (const [rule, asked] of [
      [acme.wallet_id, id],
      [id, acme.wallet_id],
    ] as const) {
      const fault = await addFault({ effect: 'error', code: 'unavailable', wallet_id: rule, count: 1 });
      await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_acme-ethereum-2' } });
      const { status } = await refusal(sandbox, 'getWallet', { path: { wallet_id: asked } });
      expect({ status, hits: await hitsOf(fault) }).toEqual({ status: 503, hits: 1 });
    }
  });

  test('a rule for requests does not meet what the inspector reads for itself', async () => {
    const fault = await addFault({ effect: 'error', code: 'unavailable', operation: 'listWallets' });
    const send = async (isRecorded: boolean) =>
      (
        await control(sandbox, 'POST', '/_sandbox/requests', {
          operation: 'listWallets',
          is_recorded: isRecorded,
        })
      ).body.status;
    expect([await send(false), await hitsOf(fault)]).toEqual([200, 0]);
    expect([await send(true), await hitsOf(fault)]).toEqual([503, 1]);
  });

  test('a rule for requests names itself in the hint of the error', async () => {
    await using hinting = await startSandbox({ hints: true });
    await addFault({ effect: 'rate_limit', retry_after_seconds: 7 }, hinting);
    const { status, headers, body } = await attempt(hinting, 'createWallet', ethereum);
    expect({ status, after: headers['retry-after'], body }).toMatchObject({
      status: 429,
      after: '7',
      body: { code: 'too_many_requests', data: { hint: expect.stringContaining('`fault_1` injected') } },
    });
  });

  test('selects by operation, app and wallet, after the credentials are checked', async () => {
    const { body: other } = await call(sandbox, 'createWallet', ethereum);
    const id = await addFault({ effect: 'error', code: 'unavailable', wallet_id: acme.wallet_id });
    await call(sandbox, 'getWallet', { path: { wallet_id: other.id } });
    expect(await refusal(sandbox, 'getWallet', { path: acme })).toMatchObject({ status: 503 });
    const unknown = { headers: { authorization: 'Basic bm86bm8=' } };
    expect(await refusal(sandbox, 'getWallet', { path: acme }, unknown)).toMatchObject({ status: 401 });
    expect(await hitsOf(id)).toBe(1);

    await control(sandbox, 'DELETE', `/_sandbox/faults/${id}`);
    await addFault({ effect: 'error', code: 'unavailable', app_id: 'another' });
    await call(sandbox, 'getWallet', { path: acme });
  });

  test('a rule for requests leaves operations alone that do not document its error, unless it may', async () => {
    const body = { effect: 'error', code: 'policy_violation' } as const;
    await addFault(body);
    await call(sandbox, 'getWallet', { path: acme });
    expect(await refusal(sandbox, 'walletRpc', signing)).toMatchObject({
      body: { code: 'policy_violation' },
    });

    await control(sandbox, 'DELETE', '/_sandbox/faults');
    await addFault({ ...body, is_undocumented: true });
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: `/v1/wallets/${acme.wallet_id}`,
      method: 'GET',
      headers: {
        authorization: `Basic ${Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64')}`,
        'service-app-id': sandbox.appId,
      },
    });
    expect(await answer.body.json()).toMatchObject({ code: 'policy_violation' });
  });

  test('cuts the connection before or after the commit', async () => {
    const before = await walletCount();
    await addFault({ effect: 'cut_before_commit', operation: 'createWallet', count: 1 });
    await addFault({ effect: 'cut_after_commit', operation: 'createWallet', count: 1 });
    await expect(attempt(sandbox, 'createWallet', ethereum)).rejects.toThrow('other side closed');
    expect(await last()).toMatchObject({ status: 0, code: null, events: [], why: { kind: 'fault' } });
    expect(await walletCount()).toBe(before);

    const key = { idempotencyKey: 'order-2041' };
    await expect(attempt(sandbox, 'createWallet', ethereum, key)).rejects.toThrow('other side closed');
    expect(await last()).toMatchObject({
      status: 0,
      response: { headers: [], body: null },
      why: { kind: 'fault', evidence: { effect: 'cut_after_commit' } },
    });
    expect(await walletCount()).toBe(before + 1);
    const again = await call(sandbox, 'createWallet', ethereum, key);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(await walletCount()).toBe(before + 1);
  });

  test('truncates a body, or sends it slowly', async () => {
    await addFault({ effect: 'truncated_body', operation: 'getWallet', count: 1 });
    await expect(attempt(sandbox, 'getWallet', { path: acme })).rejects.toThrow(
      /other side closed|terminated/,
    );
    await addFault({ effect: 'slow_body', delay_ms: 200, operation: 'getWallet', count: 1 });
    const startedMs = performance.now();
    const { body } = await call(sandbox, 'getWallet', { path: acme });
    expect(performance.now() - startedMs).toBeGreaterThan(150);
    expect(await last()).toMatchObject({ status: 200, response: { body }, why: { kind: 'fault' } });
  });

  test('delays by real time, also while the clock is frozen', async () => {
    await addFault({ effect: 'latency', delay_ms: 50, max_delay_ms: 100, count: 1 });
    const startedMs = performance.now();
    await call(sandbox, 'getWallet', { path: acme });
    expect(performance.now() - startedMs).toBeGreaterThan(45);
    const { why } = (await last()) as { why: { evidence: { delay_ms: number } } };
    expect(why.evidence.delay_ms).toBeGreaterThanOrEqual(50);
    expect(why.evidence.delay_ms).toBeLessThanOrEqual(100);
    // A refusal of its own explains itself.
    await addFault({ effect: 'latency', delay_ms: 1 });
    await refusal(sandbox, 'createWallet', { body: { chain_type: 'bicycle' } });
    await refusal(sandbox, 'getWallet', { path: { wallet_id: 'fmfdj6yqly31huorjqzq38zc' } });
    expect(await last()).toMatchObject({ why: { kind: 'validation' } });
  });

  test('a client that gives up during a delay has no response in the record', async () => {
    // The delay ends when the client leaves, so a long one costs the test no time.
    const fault = await addFault({ effect: 'latency', delay_ms: 30_000, operation: 'createWallet' });
    const before = await walletCount();
    const givingUp = new AbortController();
    const sent = sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: '/v1/wallets', method: 'POST', signal: givingUp.signal },
      body: JSON.stringify(ethereum.body),
      headers: {
        authorization: `Basic ${Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64')}`,
        'service-app-id': sandbox.appId,
        'content-type': 'application/json',
      },
    });
    const ended = expect(sent).rejects.toThrow();
    await expect.poll(() => hitsOf(fault), { timeout: 30_000 }).toBe(1);
    givingUp.abort();
    await ended;
    await expect.poll(last, { timeout: 30_000 }).toMatchObject({
      ...{ operation: 'createWallet', status: 0, code: null, response: { headers: [], body: null } },
      why: { kind: 'fault', evidence: { effect: 'latency', delay_ms: 30_000 } },
    });
    const { why } = (await last()) as { why: { hint: string } };
    expect(why.hint).toContain('the client closed the connection first; nothing was executed');
    expect(await walletCount()).toBe(before);
  });

  test('hits the same requests in every sandbox with the same seed', async () => {
    const pattern = async (on: TestSandbox): Promise<string> => {
      await addFault({ effect: 'error', code: 'unavailable', probability: 0.5 }, on);
      let hits = '';
      for (let index = 0; index < 20; index += 1)
        hits += (await attempt(on, 'getWallet', { path: acme })).status === 503 ? 'x' : '.';
      return hits;
    };
    const first = await pattern(sandbox);
    expect(first).toMatch(/x.*\..*x|\..*x.*\./);
    await sandbox.reset();
    expect(await pattern(sandbox)).toBe(first);
    await using other = await startSandbox({ seed: 'other' });
    expect(await pattern(other)).not.toBe(first);
  });
});

const signing = {
  path: acme,
  body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
};

describe('/_sandbox/faults', () => {
  const add = async (body: object) => (await control(sandbox, 'POST', '/_sandbox/faults', body)).body.error;

  test('lists, shows and removes rules, all of them at a reset', async () => {
    await addFault({ effect: 'latency' });
    const id = await addFault({ effect: 'cut_after_commit', count: 1 });
    const rule: SandboxFault = {
      ...{ id, effect: 'cut_after_commit', operation: null, app_id: null, wallet_id: null, event_type: null },
      ...{ chain: null, probability: 1, blocks: null },
      ...{
        count: 1,
        hits: 0,
        code: null,
        is_undocumented: false,
        status: null,
        headers: null,
        delay_ms: null,
        max_delay_ms: null,
      },
      retry_after_seconds: null,
    };
    expect((await control(sandbox, 'GET', '/_sandbox/faults')).body.data).toEqual([
      { ...rule, id: 'fault_1', effect: 'latency', count: null, delay_ms: 1000 },
      rule,
    ]);
    expect(await control(sandbox, 'DELETE', `/_sandbox/faults/${id}`)).toEqual({ status: 200, body: rule });
    for (const method of ['GET', 'DELETE'] as const)
      expect(await control(sandbox, method, `/_sandbox/faults/${id}`)).toMatchObject({ status: 404 });
    expect((await control(sandbox, 'DELETE', '/_sandbox/faults')).body).toEqual({ removed: 1 });

    await addFault({ effect: 'latency' });
    await control(sandbox, 'POST', '/_sandbox/reset');
    expect((await control(sandbox, 'GET', '/_sandbox/faults')).body).toEqual({ data: [] });
  });

  test('/_sandbox/faults refuses rules that could never apply', async () => {
    expect(await add({ effect: 'latency', code: 'not_found' })).toBe(
      '/code: expected no `code` for `latency`, which uses `operation`, `app_id`, `wallet_id`, `delay_ms`, `max_delay_ms`',
    );
    expect(await add({ effect: 'error' })).toBe('/code: expected an error code for `error`');
    expect(await add({ effect: 'error', code: 'not_foun' })).toBe(
      '/code: expected an error code of the API, got `not_foun`; did you mean `not_found`?',
    );
    expect(await add({ effect: 'latency', operation: 'createWalet' })).toBe(
      '/operation: expected an operation of the API, got `createWalet`; did you mean `createWallet`?',
    );
    expect(await add({ effect: 'error', operation: 'getWallet', code: 'policy_violation' })).toMatch(
      /^\/code: expected an error that `getWallet` documents \(.*`not_found`.*\), or `is_undocumented`, got `policy_violation`$/,
    );
    expect(await add({ effect: 'latency', delay_ms: 20, max_delay_ms: 10 })).toBe(
      '/max_delay_ms: expected at least `delay_ms`, 20, got `10`',
    );
    expect(await add({ effect: 'latency', delay_ms: 60_000 })).toMatch(/^\/delay_ms: /);
  });

  test('/_sandbox/faults accepts at most 100 rules', async () => {
    for (let index = 0; index < 100; index += 1) await addFault({ effect: 'latency' });
    expect(await control(sandbox, 'POST', '/_sandbox/faults', { effect: 'latency' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_state' },
    });
  });
});
