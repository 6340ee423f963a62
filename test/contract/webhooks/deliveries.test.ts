import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  accept,
  type Reply,
  refuse,
  startWebhookReceiver,
  verifyWebhook,
} from '../../support/webhook-receiver.ts';

const [second, minute, hour] = [1_000, 60_000, 3_600_000];

/** Moves the sandbox's clock. */
async function advance(sandbox: TestSandbox, durationMs: number): Promise<void> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/_sandbox/clock',
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ advance_ms: durationMs }),
  });
  if (answer.statusCode !== 200) throw new Error(await answer.body.text());
  await answer.body.dump();
}

/** Advances the clock, and waits until due deliveries are sent and answered. */
async function pass(sandbox: TestSandbox, durationMs: number): Promise<void> {
  await advance(sandbox, durationMs);
  await sandbox.settle();
}

async function createUser(sandbox: TestSandbox, address: string) {
  const body = { linked_accounts: [{ type: 'email' as const, address }] };
  return (await call(sandbox, 'createUser', { body })).body;
}

test('an event is sent once to every subscribed endpoint, signed, as soon as it is recorded', async () => {
  await using sandbox = await startSandbox();
  await using every = await startWebhookReceiver();
  await using some = await startWebhookReceiver();
  await using none = await startWebhookReceiver();
  const create = async (url: string, event_types?: string[]) =>
    (await call(sandbox, 'createWebhookEndpoint', { body: { url, ...(event_types && { event_types }) } }))
      .body;
  const endpoints = [
    await create(every.url),
    await create(some.url, ['user.created']),
    await create(none.url, ['user.deleted']),
  ];
  const user = await createUser(sandbox, 'carol@example.com');
  await Promise.all([every.count(1), some.count(1)]);
  await pass(sandbox, 0);

  for (const [index, receiver] of [every, some].entries()) {
    expect(receiver.received.map(({ body }) => body)).toEqual([{ type: 'user.created', user }]);
    const [got] = receiver.received as [(typeof receiver.received)[0]];
    expect(got.headers).toMatchObject({ 'content-type': 'application/json' });
    // By the system clock, as receivers verify it, although the clock of the sandbox is frozen in the past.
    verifyWebhook(got, endpoints[index]!.secret);
    expect(() => verifyWebhook(got, endpoints[2]!.secret)).toThrow('No matching signature');
  }
  expect(every.received[0]!.id).toBe(some.received[0]!.id);
  expect(none.received).toEqual([]);

  const path = { endpoint_id: endpoints[0]!.id };
  expect((await call(sandbox, 'listWebhookDeliveries', { path })).body).toEqual({
    data: [
      {
        id: expect.stringMatching(/^d[0-9a-z]{23}$/),
        endpoint_id: endpoints[0]!.id,
        event_id: every.received[0]!.id,
        event_type: 'user.created',
        status: 'delivered',
        attempt_count: 1,
        attempts: [
          {
            attempted_at: sandbox.clock.now(),
            duration_ms: expect.any(Number),
            response_status: 204,
            error: null,
          },
        ],
        next_attempt_at: null,
        created_at: sandbox.clock.now(),
      },
    ],
    next_cursor: null,
  });
});

test('a failed delivery is retried on schedule with the same id, and given up after the last attempt', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver(refuse);
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const path = { endpoint_id: endpoint.id };
  await createUser(sandbox, 'carol@example.com');
  await pass(sandbox, 0);
  expect(receiver.received).toHaveLength(1);

  const schedule = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour];
  for (const [index, delayMs] of schedule.entries()) {
    const { body } = await call(sandbox, 'listWebhookDeliveries', { path });
    const [{ next_attempt_at, status, attempt_count }] = body.data as [(typeof body.data)[0]];
    expect({ status, attempt_count }).toEqual({ status: 'pending', attempt_count: index + 1 });
    const waitMs = next_attempt_at! - sandbox.clock.now();
    expect(waitMs).toBeGreaterThanOrEqual(delayMs);
    expect(waitMs).toBeLessThanOrEqual(delayMs * 1.1);
    await pass(sandbox, waitMs - 1);
    expect(receiver.received).toHaveLength(index + 1);
    await pass(sandbox, 1);
    expect(receiver.received).toHaveLength(index + 2);
  }
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
  await pass(sandbox, 100 * hour);
  expect(receiver.received).toHaveLength(8);
  const { body: given } = await call(sandbox, 'listWebhookDeliveries', { path, query: { status: 'failed' } });
  expect(given.data).toMatchObject([{ status: 'failed', attempt_count: 8, next_attempt_at: null }]);
  expect(given.data[0]!.attempts.map(({ response_status }) => response_status)).toEqual(Array(8).fill(500));

  // After it was given up, it can still be replayed.
  receiver.reply(accept);
  const replayed = await call(sandbox, 'replayWebhookDelivery', {
    path: { ...path, delivery_id: given.data[0]!.id },
  });
  expect(replayed.body).toMatchObject({ status: 'pending', next_attempt_at: sandbox.clock.now() });
  await pass(sandbox, 0);
  expect(receiver.received).toHaveLength(9);
  expect(receiver.received[8]!.id).toBe(receiver.received[0]!.id);
  const { body: after } = await call(sandbox, 'listWebhookDeliveries', { path });
  expect(after.data).toMatchObject([{ status: 'delivered', attempt_count: 9 }]);
});

test('a clock that is advanced past the whole schedule makes every attempt at its own time', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver(refuse);
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  await createUser(sandbox, 'carol@example.com');
  const startMs = sandbox.clock.now();
  await advance(sandbox, 31 * hour);
  expect(receiver.received).toHaveLength(8);
  const path = { endpoint_id: endpoint.id };
  const { body } = await call(sandbox, 'listWebhookDeliveries', { path });
  const { status, attempts } = body.data[0]!;
  expect(status).toBe('failed');
  const pauses = attempts.map(
    ({ attempted_at }, index) => attempted_at - (attempts[index - 1]?.attempted_at ?? startMs),
  );
  for (const [index, delayMs] of [
    0,
    5 * second,
    5 * minute,
    30 * minute,
    2 * hour,
    5 * hour,
    10 * hour,
    10 * hour,
  ].entries()) {
    expect(pauses[index]).toBeGreaterThanOrEqual(delayMs);
    expect(pauses[index]).toBeLessThanOrEqual(delayMs * 1.1);
  }
  expect(sandbox.clock.now()).toBe(startMs + 31 * hour);
});

test('events of one resource are sent in order, those of others independently', async () => {
  await using sandbox = await startSandbox();
  const isCarol: Reply = ({ bodyText }, response) =>
    (bodyText.includes('carol') ? refuse : accept)({} as never, response);
  await using receiver = await startWebhookReceiver(isCarol);
  await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const carol = await createUser(sandbox, 'carol@example.com');
  const path = { user_id: carol.id };
  const phone = '+15555550123';
  await call(sandbox, 'linkUserAccount', { path, body: { type: 'phone', number: phone } });
  await pass(sandbox, 0);
  await call(sandbox, 'unlinkUserAccount', { path, body: { type: 'phone', handle: phone } });
  await createUser(sandbox, 'dave@example.com');
  await pass(sandbox, 0);
  const types = () => receiver.received.map(({ body }) => body.type);
  expect(types()).toEqual(['user.created', 'user.created']);
  expect(receiver.received[1]!.bodyText).toContain('dave');

  receiver.reply(accept);
  await pass(sandbox, 6 * second);
  expect(types().slice(2)).toEqual(['user.created', 'user.linked_account', 'user.unlinked_account']);
});

test('events behind one that was given up are sent', async () => {
  await using sandbox = await startSandbox();
  const isCreation: Reply = ({ body }, response) =>
    (body.type === 'user.created' ? refuse : accept)({} as never, response);
  await using receiver = await startWebhookReceiver(isCreation);
  await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const carol = await createUser(sandbox, 'carol@example.com');
  await call(sandbox, 'deleteUser', { path: { user_id: carol.id } });
  const types = () => receiver.received.map(({ body }) => body.type);
  await pass(sandbox, 0);
  expect(types()).toEqual(['user.created']);
  await pass(sandbox, 19 * hour);
  expect(types()).toEqual(Array(7).fill('user.created'));
  await pass(sandbox, 11 * hour);
  expect(types()).toEqual([...Array(8).fill('user.created'), 'user.deleted']);
});

test('redirects are failures and are not followed', async () => {
  await using sandbox = await startSandbox();
  await using target = await startWebhookReceiver();
  await using receiver = await startWebhookReceiver(
    (_, response) => void response.writeHead(307, { location: target.url }).end(),
  );
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  await createUser(sandbox, 'carol@example.com');
  await pass(sandbox, 0);
  expect(target.received).toEqual([]);
  const { body } = await call(sandbox, 'listWebhookDeliveries', { path: { endpoint_id: endpoint.id } });
  expect(body.data).toMatchObject([{ status: 'pending', attempts: [{ response_status: 307, error: null }] }]);
});

test('an unreachable endpoint is a failure like any other', async () => {
  await using sandbox = await startSandbox();
  const gone = await startWebhookReceiver();
  await gone[Symbol.asyncDispose]();
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: gone.url } });
  await createUser(sandbox, 'carol@example.com');
  await pass(sandbox, 0);
  const { body } = await call(sandbox, 'listWebhookDeliveries', { path: { endpoint_id: endpoint.id } });
  expect(body.data).toMatchObject([
    { status: 'pending', attempts: [{ response_status: null, error: 'connection_failed' }] },
  ]);
});

test('both secrets sign during the overlap, only the new one after it', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver();
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const path = { endpoint_id: endpoint.id };
  const { body: rotated } = await call(sandbox, 'rotateWebhookSecret', {
    path,
    body: { overlap_seconds: 60 },
  });
  const send = async () => {
    await call(sandbox, 'testWebhookEndpoint', { path, body: {} });
    await pass(sandbox, 0);
    return receiver.received.at(-1)!;
  };
  const during = await send();
  for (const { secret } of [endpoint, rotated]) verifyWebhook(during, secret);
  expect(String(during.headers['webhook-signature']).split(' ')).toHaveLength(2);
  await pass(sandbox, 60_000);
  const after = await send();
  verifyWebhook(after, rotated.secret);
  expect(() => verifyWebhook(after, endpoint.secret)).toThrow('No matching signature');
  const { body: last } = await call(sandbox, 'rotateWebhookSecret', { path, body: { overlap_seconds: 0 } });
  const leaked = await send();
  verifyWebhook(leaked, last.secret);
  expect(() => verifyWebhook(leaked, rotated.secret)).toThrow('No matching signature');
});

test('a test event goes to one endpoint only, whatever its event types', async () => {
  await using sandbox = await startSandbox();
  await using one = await startWebhookReceiver();
  await using other = await startWebhookReceiver();
  const body = (url: string) => ({ url, event_types: ['user.deleted'] });
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: body(one.url) });
  await call(sandbox, 'createWebhookEndpoint', { body: { url: other.url } });
  const path = { endpoint_id: endpoint.id };
  const { body: delivery } = await call(sandbox, 'testWebhookEndpoint', {
    path,
    body: { payload: 'Anybody?' },
  });
  expect(delivery).toMatchObject({ event_type: 'service.test', status: 'pending', attempts: [] });
  await pass(sandbox, 0);
  expect(one.received).toMatchObject([
    { id: delivery.event_id, body: { type: 'service.test', payload: 'Anybody?' } },
  ]);
  expect(other.received).toEqual([]);
});

test('a test event triggered in the sandbox is an ordinary event for endpoints that subscribe to all types', async () => {
  await using sandbox = await startSandbox();
  await using every = await startWebhookReceiver();
  await using some = await startWebhookReceiver();
  await call(sandbox, 'createWebhookEndpoint', { body: { url: every.url } });
  await call(sandbox, 'createWebhookEndpoint', { body: { url: some.url, event_types: ['user.created'] } });
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/_sandbox/events',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'service.test' }),
  });
  const event = (await answer.body.json()) as { id: string };
  await sandbox.settle();
  expect(every.received.map(({ id, body }) => [id, body.type])).toEqual([[event.id, 'service.test']]);
  expect(some.received).toEqual([]);
});

test('a disabled endpoint receives nothing; pending deliveries follow when it is enabled, events recorded meanwhile do not', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver(refuse);
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const path = { endpoint_id: endpoint.id };
  await createUser(sandbox, 'waits@example.com');
  await pass(sandbox, 0);
  const { body: list } = await call(sandbox, 'listWebhookDeliveries', { path });
  await call(sandbox, 'updateWebhookEndpoint', { path, body: { status: 'disabled' } });
  receiver.reply(accept);
  await createUser(sandbox, 'passes-by@example.com');
  await pass(sandbox, hour);
  expect(receiver.received).toHaveLength(1);
  const disabled = {
    status: 400,
    body: { error: 'the webhook endpoint is disabled; enable it first', code: 'invalid_state' },
  };
  expect(await refusal(sandbox, 'testWebhookEndpoint', { path, body: {} })).toEqual(disabled);
  const delivery = { ...path, delivery_id: list.data[0]!.id };
  expect(await refusal(sandbox, 'replayWebhookDelivery', { path: delivery })).toEqual(disabled);
  await call(sandbox, 'updateWebhookEndpoint', { path, body: { status: 'enabled' } });
  await pass(sandbox, 0);
  expect(receiver.received.map(({ id }) => id)).toEqual(Array(2).fill(list.data[0]!.event_id));
});

test('an endpoint that only fails for five days is disabled', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver(refuse);
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const path = { endpoint_id: endpoint.id };
  const get = async () => (await call(sandbox, 'getWebhookEndpoint', { path })).body;
  const failForFiveDays = async (name: string) => {
    for (let day = 0; day < 5; day += 1) {
      await createUser(sandbox, `${name}-${day}@example.com`);
      await pass(sandbox, 0);
      expect((await get()).status).toBe('enabled');
      await pass(sandbox, 24 * hour - 1);
    }
  };
  await failForFiveDays('first');
  // At the last moment: a success restarts the five days.
  receiver.reply(accept);
  await call(sandbox, 'testWebhookEndpoint', { path, body: {} });
  await pass(sandbox, 5);
  receiver.reply(refuse);
  await failForFiveDays('second');
  expect((await get()).status).toBe('enabled');
  await pass(sandbox, 5);
  await call(sandbox, 'testWebhookEndpoint', { path, body: {} });
  await pass(sandbox, 0);
  expect(await get()).toMatchObject({
    status: 'disabled',
    disabled_reason: 'failing',
    updated_at: sandbox.clock.now(),
  });

  // Enabled again, it has five days more.
  await call(sandbox, 'updateWebhookEndpoint', { path, body: { status: 'enabled' } });
  await failForFiveDays('third');
});

test('one failure after days without attempts does not disable an endpoint, failures on five days do', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver(refuse);
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const path = { endpoint_id: endpoint.id };
  const failOnce = async () => {
    await call(sandbox, 'testWebhookEndpoint', { path, body: {} });
    await pass(sandbox, 0);
    return (await call(sandbox, 'getWebhookEndpoint', { path })).body.status;
  };
  /** Fails today and tomorrow; afterwards nothing is sent. */
  const failTillGivenUp = async () => {
    expect(await failOnce()).toBe('enabled');
    const waits = [6 * second, 6 * minute, 35 * minute, 140 * minute, 330 * minute, 11 * hour, 11 * hour];
    for (const waitMs of waits) await pass(sandbox, waitMs);
    const { body } = await call(sandbox, 'listWebhookDeliveries', { path, query: { status: 'pending' } });
    expect(body.data).toEqual([]);
  };
  await failTillGivenUp();
  await pass(sandbox, 5 * 24 * hour);
  await failTillGivenUp();
  await pass(sandbox, 5 * 24 * hour);
  expect(await failOnce()).toBe('disabled');
});

test('deliveries are listed in pages, newest first, and unknown cursors and deliveries are refused', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver();
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const path = { endpoint_id: endpoint.id };
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    ids.unshift((await call(sandbox, 'testWebhookEndpoint', { path, body: {} })).body.id);
  }
  const { body: first } = await call(sandbox, 'listWebhookDeliveries', { path, query: { limit: 3 } });
  const { body: last } = await call(sandbox, 'listWebhookDeliveries', {
    path,
    query: { limit: 3, cursor: first.next_cursor! },
  });
  expect([first.data.length, last.data.length, last.next_cursor]).toEqual([3, 2, null]);
  expect([...first.data, ...last.data].map(({ id }) => id)).toEqual(ids);
  const bad = await refusal(sandbox, 'listWebhookDeliveries', { path, query: { cursor: 'x\u0000' } });
  expect(bad).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  expect(
    await refusal(sandbox, 'replayWebhookDelivery', { path: { ...path, delivery_id: 'unknown' } }),
  ).toEqual({ status: 404, body: { error: 'Webhook delivery not found' } });
});

test('with a brand, payloads are branded like responses and signed as sent', async () => {
  await using sandbox = await startSandbox({ prefix: 'acme' });
  await using receiver = await startWebhookReceiver();
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const user = await createUser(sandbox, 'carol@example.com');
  await pass(sandbox, 0);
  expect(user.id).toMatch(/^did:acme:/);
  expect(receiver.received.map(({ body }) => body)).toEqual([{ type: 'user.created', user }]);
  verifyWebhook(receiver.received[0]!, endpoint.secret);
  const path = { endpoint_id: endpoint.id };
  const { body: delivery } = await call(sandbox, 'testWebhookEndpoint', { path, body: {} });
  expect(delivery.event_type).toBe('acme.test');
  await pass(sandbox, 0);
  expect(receiver.received[1]!.body.type).toBe('acme.test');
});

test('the clock does not wait for an unresponsive endpoint', async () => {
  await using sandbox = await startSandbox();
  let release = (): void => undefined;
  await using receiver = await startWebhookReceiver((_, response) => {
    release = () => response.writeHead(204).end();
  });
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  await createUser(sandbox, 'carol@example.com');
  await receiver.count(1);
  await advance(sandbox, hour);
  const path = { endpoint_id: endpoint.id };
  const status = async () => (await call(sandbox, 'listWebhookDeliveries', { path })).body.data[0]!.status;
  expect(await status()).toBe('pending');
  release();
  await sandbox.settle();
  expect(await status()).toBe('delivered');
});

test('deliveries from before a reset do not affect those after it, although the ids are the same', async () => {
  await using sandbox = await startSandbox();
  const answers: (() => void)[] = [];
  await using receiver = await startWebhookReceiver((_, response) => {
    const status = answers.length === 0 ? 204 : 500;
    answers.push(() => response.writeHead(status).end());
  });
  const snapshot = async () => {
    const { body } = await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
    await createUser(sandbox, 'carol@example.com');
    return body.id;
  };
  const before = await snapshot();
  await receiver.count(1);
  await sandbox.reset();
  const after = await snapshot();
  await receiver.count(2);
  expect([after, receiver.received[1]!.id]).toEqual([before, receiver.received[0]!.id]);
  answers[0]!();
  answers[1]!();
  await sandbox.settle();
  const { body } = await call(sandbox, 'listWebhookDeliveries', { path: { endpoint_id: after } });
  expect(body.data).toMatchObject([{ attempt_count: 1, attempts: [{ response_status: 500 }] }]);
});

test('a reset deletes endpoints and pending deliveries', async () => {
  await using sandbox = await startSandbox();
  await using receiver = await startWebhookReceiver(refuse);
  await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  await createUser(sandbox, 'carol@example.com');
  await pass(sandbox, 0);
  await sandbox.reset();
  await pass(sandbox, hour);
  expect(receiver.received).toHaveLength(1);
  expect((await call(sandbox, 'listWebhookEndpoints', {})).body.data).toEqual([]);
});
