import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { Agent } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { recordEvent } from '../../../src/domain/base/events/events.ts';
import { createNotes } from '../../../src/ports/operation-context.ts';
import type { SandboxEvent, SandboxEvents } from '../../../src/sandbox/generated/schemas.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const startMs = Date.UTC(2026, 0, 1);
const types = Object.keys(document.webhooks).sort();

// These events are made up, so the ledger must not count them.
pauseRecording();

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

interface Answered<Body> {
  readonly status: number;
  readonly body: Body;
}

async function control<Body>(
  path: string,
  {
    body,
    on = sandbox,
    dispatcher = on.dispatcher,
  }: { body?: object; on?: TestSandbox; dispatcher?: Agent } = {},
): Promise<Answered<Body>> {
  const answer = await dispatcher.request({
    origin: on.baseUrl,
    path: `/_sandbox/events${path}`,
    method: body === undefined ? 'GET' : 'POST',
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Body };
}

async function trigger(type: string, more: object = {}): Promise<SandboxEvent> {
  const { status, body } = await control<SandboxEvent>('', { body: { type, ...more } });
  expect(status).toBe(200);
  return body;
}

async function list(query = ''): Promise<SandboxEvents> {
  const { status, body } = await control<SandboxEvents>(query === '' ? '' : `?${query}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body;
}

/** An event as it was before its deliveries were created, which may happen at any time. */
const undelivered = (event: SandboxEvent): SandboxEvent => ({ ...event, deliveries: null });

const ids = ({ data }: SandboxEvents): string[] => data.map(({ id }) => id);

describe('triggering an event', () => {
  test('every event of the contract can be triggered and matches its schema', async () => {
    expect(types.length).toBeGreaterThanOrEqual(67);
    const ajv = new Ajv2020({ strict: false, validateSchema: false });
    addFormats.default(ajv);
    ajv.addSchema({ $id: 'document', ...document });
    const made: SandboxEvent[] = [];
    for (const type of types) {
      const event = await trigger(type);
      expect(event).toEqual({
        id: expect.stringMatching(/^msg_[a-z][0-9a-z]{23}$/),
        app_id: acmeApp.id,
        type,
        created_at_ms: startMs,
        subject: expect.toSatisfy((subject) => subject === null || typeof subject.id === 'string'),
        wallet: null,
        user: expect.toSatisfy((user) => user === null || user.name === null),
        request_id: null,
        deliveries: null,
        payload: expect.objectContaining({ type }),
      });
      const pointer = `document#/webhooks/${type}/post/requestBody/content/application~1json/schema`;
      const validate = ajv.getSchema(pointer);
      expect(validate?.(event.payload), `${type}: ${JSON.stringify(validate?.errors)}`).toBe(true);
      made.push(event);
    }
    const first = await list();
    const listed = [...first.data, ...(await list(`after=${first.cursor}`)).data];
    expect(listed.map(undelivered)).toEqual(made);
  });

  test('an event has the names of its wallet and user, its request, and its deliveries to endpoints', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', display_name: 'Till' },
    });
    const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', {
      body: { url: 'https://receiver.example/', event_types: ['wallet.archived'] },
    });
    const { headers } = await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'carol@shop.example' }] },
    });
    const about = { id: wallet.id, name: 'Till' };
    await vi.waitFor(async () => {
      const [archived, created] = (await list()).data;
      expect(archived).toMatchObject({
        type: 'wallet.archived',
        subject: { type: 'wallet', ...about },
        wallet: { ...about, address: wallet.address },
        user: null,
        request_id: headers['x-request-id'],
        deliveries: [{ endpoint_id: endpoint.id }],
      });
      const named = { id: user.id, name: 'carol@shop.example' };
      expect(created).toMatchObject({
        subject: { type: 'user', ...named },
        user: named,
        wallet: null,
        deliveries: [],
      });
    });
  });

  test('values are set by path, as text where the example has text', async () => {
    const plain = await trigger('wallet_action.transfer.failed');
    const changed = await trigger('wallet_action.transfer.failed', {
      set: { wallet_id: 'w', '/failure_reason/message': 'out of gas' },
      set_text: { 'steps.0.status': 'reverted' },
    });
    const { failure_reason: reason, steps } = plain.payload as unknown as {
      failure_reason: object;
      steps: object[];
    };
    expect(changed.payload).toEqual({
      ...plain.payload,
      wallet_id: 'w',
      failure_reason: { ...reason, message: 'out of gas' },
      steps: [{ ...steps[0], status: 'reverted' }, ...steps.slice(1)],
    });
  });

  test('an event of another app', async () => {
    const { body: globex } = await callApps();
    const event = await trigger('mfa.enabled', { app_id: globex.id });
    expect(event.app_id).toBe(globex.id);
    await trigger('mfa.enabled');
    expect(ids(await list(`app_id=${globex.id}`))).toEqual([event.id]);
  });

  async function callApps(): Promise<{ body: { id: string } }> {
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: '/_sandbox/apps',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"Globex"}',
    });
    return { body: (await answer.body.json()) as { id: string } };
  }

  test.each([
    [{ type: 'wallet.archived', set: { archived_at: 'soon' } }, 'event', '/archived_at', 'must be a number'],
    [{ type: 'wallet.archived', set: { wallet_id: null } }, 'event', '/wallet_id', 'must be a string'],
    [{ type: 'wallet.archived', set: { colour: 'red' } }, 'event', '/colour', 'unknown property'],
    [{ type: 'wallet.archived', set: { __proto__x: 1 } }, 'event', '/__proto__x', 'unknown property'],
    [
      JSON.parse('{"type":"wallet.archived","set":{"__proto__":1}}'),
      'event',
      '/__proto__',
      'unknown property',
    ],
    [
      { type: 'wallet.archived', set: { 'wallet_id.x': 1 } },
      'body',
      '/set/wallet_id.x',
      'expected an object or list that contains `x`, got a plain value',
    ],
    [
      { type: 'intent.created', set_text: { '/a~b/c': '1', 'type.': '2' } },
      'body',
      '/set_text/type.',
      'expected a path without empty names',
    ],
    [
      { type: 'user.created', set: { 'user.linked_accounts.7': {} } },
      'body',
      '/set/user.linked_accounts.7',
      expect.stringMatching(/^expected a list index of at most \d, got `7`$/),
    ],
    [
      { type: 'user.created', set: { [`user${'.x'.repeat(40)}`]: 1 } },
      'body',
      expect.stringMatching(/^\/set\/user\.x/),
      'expected a path of at most 32 names, got 41',
    ],
    [{ type: 'wallet.archived', set: [] }, 'body', '/set', 'must be an object'],
    [
      { type: 'wallet.archived', set_text: { wallet_id: 5 } },
      'body',
      '/set_text/wallet_id',
      'must be a string',
    ],
    [{}, 'body', '/type', 'is required'],
    [
      { type: 'mfa.archived' },
      'body',
      '/type',
      'the contract has no event `mfa.archived`, only `mfa.disabled`, `mfa.enabled`',
    ],
  ])('%j is refused with the pointer, and nothing is recorded', async (body, place, pointer, message) => {
    const { status, body: refused } = await control<Record<string, unknown>>('', { body });
    expect({ status, refused }).toEqual({
      status: 400,
      refused: {
        error: expect.any(String),
        code: 'invalid_data',
        data: { issues: [{ in: place, pointer, message }] },
      },
    });
    expect((await list()).data).toEqual([]);
  });

  test('a text of half a megabyte and one with U+0000 are kept unchanged', async () => {
    const text = `${'x'.repeat(500_000)}\u0000`;
    const event = await trigger('wallet.archived', { set: { wallet_address: text } });
    expect((await list()).data.map(undelivered)).toEqual([event]);
    expect(event.payload).toMatchObject({ wallet_address: text });
  });

  test('events of an unknown app', async () => {
    const answer = await control('', { body: { type: 'mfa.enabled', app_id: 'unknown' } });
    expect(answer).toEqual({ status: 404, body: { error: 'App not found' } });
  });
});

describe('replaying an event', () => {
  test('replaying an event: keeps payload, app and type, with a new id and time', async () => {
    const first = await trigger('wallet.archived', { set: { wallet_id: 'w' } });
    sandbox.clock.advance(1000);
    const { status, body } = await control<SandboxEvent>(`/${first.id}/replay`, { body: {} });
    expect({ status, body }).toEqual({
      status: 200,
      body: { ...first, id: expect.stringMatching(/^msg_/), created_at_ms: startMs + 1000 },
    });
    expect(ids(await list())).toEqual([first.id, body.id]);
  });

  test('an event of an unknown id cannot be replayed', async () => {
    const answer = await control('/msg_nothing/replay', { body: {} });
    expect(answer).toEqual({ status: 404, body: { error: 'Event not found' } });
  });
});

describe('the log', () => {
  test('the log begins after the seed data', async () => {
    expect(await list()).toEqual({
      data: [],
      cursor: expect.stringMatching(/^[0-9a-f]{8}\.0$/),
      began_anew: false,
    });
  });

  test('the log is read in pages, by type, by value and after an event', async () => {
    const made: SandboxEvent[] = [];
    for (const place of [0, 1, 2, 3, 4]) {
      made.push(await trigger('wallet.archived', { set: { wallet_id: `w${place}` } }));
      made.push(await trigger('mfa.enabled'));
    }
    const all = made.map(({ id }) => id);
    const walletIds = all.filter((_, place) => place % 2 === 0);
    const first = await list('type=wallet.*&limit=2');
    expect(ids(first)).toEqual(walletIds.slice(0, 2));
    const second = await list(`type=wallet.*&after=${first.cursor}`);
    expect(ids(second)).toEqual(walletIds.slice(2));
    expect(await list(`after=${second.cursor}`)).toEqual({
      data: [],
      cursor: second.cursor,
      began_anew: false,
    });
    expect(ids(await list(`after=${all[6]}`))).toEqual(all.slice(7));
    expect(ids(await list('type=mfa.enabled&type=wallet.archived'))).toEqual(all);
    expect(ids(await list('type=mfa.disabled&type=*'))).toEqual(all);
    expect(ids(await list('after=now'))).toEqual([]);
    expect(ids(await list('where=wallet_id=w3'))).toEqual([all[6]]);
    expect(ids(await list('where=wallet_id=w3&where=type=mfa.enabled'))).toEqual([]);
  });

  test('values are compared as text or as JSON, and an absent path matches nothing', async () => {
    const event = await trigger('wallet.funds_deposited', { set: { amount: '5', 'block.number': 7 } });
    const found = async (condition: string) => ids(await list(`where=${encodeURIComponent(condition)}`));
    for (const held of ['amount=5', 'block.number=7', '/block/number=7', 'amount="5"', 'block.number=7.0']) {
      expect([held, await found(held)]).toEqual([held, [event.id]]);
    }
    for (const not of ['amount=5.0', 'block=7', 'nothing=null', 'block.nothing.more=', '__proto__={}']) {
      expect([not, await found(not)]).toEqual([not, []]);
    }
  });

  test('a match is found beyond the first batch of events', async () => {
    const { services, database } = sandbox;
    const payload = { wallet_id: 'w', wallet_address: '0x', chain_type: 'ethereum' };
    await database.orm.em.fork().transactional(async (em) => {
      const context = { ...services, em: em as never, notes: createNotes(), nowMs: startMs };
      for (let count = 0; count < 1201; count += 1)
        await recordEvent(context, { appId: acmeApp.id, type: 'wallet.restored', payload });
    });
    const last = await trigger('wallet.restored', { set: { wallet_id: 'the last' } });
    const found = await list('where=wallet_id=the+last&type=wallet.restored');
    expect(found.data.map(undelivered)).toEqual([last]);
    expect(ids(await list(`after=${found.cursor}`))).toEqual([]);
  });

  test.each([
    ['after=yesterday', '/after'],
    ['limit=101', '/limit'],
    ['wait_ms=30001', '/wait_ms'],
    ['wait_ms=soon', '/wait_ms'],
    ['type=wallet.invented', '/type'],
    ['type=invented.*', '/type'],
    ['where=wallet_id', '/where'],
    ['where=a..b=1', '/where'],
  ])('the log: %s is refused', async (query, pointer) => {
    const { status, body } = await control<Record<string, unknown>>(`?${query}`);
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', data: { issues: [{ in: 'query', pointer }] } },
    });
  });

  test('after an unknown event', async () => {
    expect(await control('?after=msg_nothing')).toEqual({ status: 404, body: { error: 'Event not found' } });
  });

  test('a reset starts a new log, even if the same events follow', async () => {
    await trigger('wallet.archived');
    const { cursor } = await list();
    await sandbox.reset();
    const again = await trigger('wallet.archived');
    const answer = await list(`after=${cursor}`);
    expect(answer).toMatchObject({ cursor: expect.any(String), began_anew: true });
    expect(answer.data.map(undelivered)).toEqual([again]);
    expect(await list(`after=${answer.cursor}`)).toMatchObject({ data: [], began_anew: false });
  });
});

describe('waiting for an event', () => {
  test('waiting for an event: ends with the event, and does not block writers', async () => {
    const waiting = list('wait_ms=30000&type=wallet.restored');
    await trigger('wallet.archived');
    const made = await trigger('wallet.restored');
    expect((await waiting).data.map(undelivered)).toEqual([made]);
  });

  test('waiting for an event: ends after the timeout in real time, whatever the clock of the sandbox', async () => {
    const { cursor } = await list();
    expect(await list('wait_ms=60')).toEqual({ data: [], cursor, began_anew: false });
  });

  test('an event counts from its commit', async () => {
    const { services, database } = sandbox;
    const em = database.orm.em.fork();
    await em.begin();
    const payload = { wallet_id: 'w', wallet_address: '0x', chain_type: 'ethereum' };
    const id = await recordEvent(
      { ...services, em, notes: createNotes(), nowMs: startMs },
      { appId: acmeApp.id, type: 'wallet.restored', payload },
    );
    const waiting = list('wait_ms=30000');
    await em.rollback();
    const made = await trigger('wallet.archived');
    expect(ids(await waiting)).toEqual([made.id]);
    expect(made.id).not.toBe(id);
  });

  test('a reset ends it with an indication', async () => {
    await trigger('wallet.archived');
    const { cursor } = await list();
    const waiting = list(`wait_ms=30000&after=${cursor}`);
    await sandbox.reset();
    expect(await waiting).toEqual({ data: [], cursor: expect.any(String), began_anew: true });
  });

  test('stopping the server ends it with a response', async () => {
    const stopped = await startSandbox();
    const dispatcher = new Agent({ connect: { ca: stopped.caPem } });
    const looks = vi.spyOn(stopped.database.orm.em, 'fork');
    const waiting = control<SandboxEvents>('?wait_ms=30000', { on: stopped, dispatcher });
    await vi.waitUntil(() => looks.mock.calls.length > 0);
    await stopped[Symbol.asyncDispose]();
    expect(await waiting).toMatchObject({ status: 200, body: { data: [], began_anew: false } });
    await dispatcher.destroy();
  });
});

test('a sandbox of another brand shows and accepts branded values', async () => {
  await using branded = await startSandbox({ prefix: 'acme' });
  const userId = 'did:acme:cmh2k4x0p00001qx9h3v7t5ab';
  const body = { type: 'user.deleted', set: { 'user.id': userId } };
  const made = await control<SandboxEvent>('', { body, on: branded });
  expect(made).toMatchObject({ status: 200, body: { payload: { user: { id: userId } } } });
  const stored = await branded.database.orm.em
    .fork()
    .execute<{ payload: string }[]>('select payload from outbox_events');
  expect(JSON.parse(stored[0]?.payload ?? '')).toMatchObject({
    user: { id: userId.replace('acme', 'service') },
  });
  const found = await control<SandboxEvents>(`?where=user.id=${userId}`, { on: branded });
  expect(found.body.data.map(undelivered)).toEqual([made.body]);
});
