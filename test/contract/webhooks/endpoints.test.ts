import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const url = 'https://hooks.acme.example/custos';
const startMs = Date.UTC(2026, 0, 1);

test('an endpoint is created with its secret, which no other response contains', async () => {
  const { body: created } = await call(sandbox, 'createWebhookEndpoint', {
    body: { url, description: 'Ledger', event_types: ['wallet.archived', 'wallet.archived', 'user.created'] },
  });
  const { secret, ...endpoint } = created;
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(endpoint).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    url,
    description: 'Ledger',
    event_types: ['wallet.archived', 'user.created'],
    status: 'enabled',
    disabled_reason: null,
    created_at: startMs,
    updated_at: startMs,
  });
  const path = { endpoint_id: endpoint.id };
  expect((await call(sandbox, 'getWebhookEndpoint', { path })).body).toEqual(endpoint);
  const { body: list } = await call(sandbox, 'listWebhookEndpoints', {});
  expect(list).toEqual({ data: [endpoint], next_cursor: null });

  const { body: updated } = await call(sandbox, 'updateWebhookEndpoint', {
    path,
    body: { description: null, event_types: ['user.created', '*'], status: 'disabled' },
  });
  const changed = {
    ...endpoint,
    description: null,
    event_types: ['*'],
    status: 'disabled',
    disabled_reason: 'requested',
  };
  expect(updated).toEqual(changed);
  const { body: enabled } = await call(sandbox, 'updateWebhookEndpoint', {
    path,
    body: { status: 'enabled' },
  });
  expect(enabled).toEqual({ ...changed, status: 'enabled', disabled_reason: null });

  const { body: rotated } = await call(sandbox, 'rotateWebhookSecret', { path, body: {} });
  expect(rotated).toEqual({ ...enabled, secret: expect.stringMatching(/^whsec_/) });
  expect(rotated.secret).not.toBe(secret);

  expect((await call(sandbox, 'deleteWebhookEndpoint', { path })).body).toEqual({ success: true });
  for (const [id, body] of [
    ['getWebhookEndpoint', undefined],
    ['updateWebhookEndpoint', { status: 'enabled' }],
    ['deleteWebhookEndpoint', undefined],
    ['rotateWebhookSecret', {}],
    ['testWebhookEndpoint', {}],
    ['listWebhookDeliveries', undefined],
  ] as const) {
    expect(await refusal(sandbox, id, { path, body }), id).toEqual({
      status: 404,
      body: { error: 'Webhook endpoint not found' },
    });
  }
});

test('no secret is stored in plain text', async () => {
  const { body } = await call(sandbox, 'createWebhookEndpoint', { body: { url } });
  const rows = await sandbox.database.orm.em.fork().execute('select * from webhook_secrets');
  const key = Buffer.from(body.secret.slice('whsec_'.length), 'base64');
  const stored = Buffer.concat(
    rows
      .flatMap((row) => Object.values(row))
      .map((value) => Buffer.from(Buffer.isBuffer(value) ? value : String(value))),
  );
  expect(stored.length).toBeGreaterThan(100);
  expect(stored.includes(key)).toBe(false);
  expect(stored.includes(body.secret)).toBe(false);
  await call(sandbox, 'deleteWebhookEndpoint', { path: { endpoint_id: body.id } });
});

test.each([
  [{ url: 'ftp://hooks.acme.example/' }, '/url: expected an absolute HTTP or HTTPS URL'],
  [{ url: '/hook' }, '/url: expected an absolute HTTP or HTTPS URL'],
  [{ url: 'https://hooks.acme.example/\u0000' }, '/url: must not contain U+0000'],
  [{ url: 'https://hooks.acme.example/a b' }, '/url: expected printable ASCII characters without blanks'],
  [
    { url: 'https://alice:secret@hooks.acme.example/' },
    '/url: expected a URL without user name and password',
  ],
  [{ url: 'https://hooks.acme.example/#top' }, '/url: expected a URL without a fragment'],
  [
    { url, event_types: ['user.created', 'user.invented'] },
    '/event_types/1: expected an event type or `*`, got "user.invented"',
  ],
  [{ url, event_types: ['constructor'] }, '/event_types/0: expected an event type or `*`, got "constructor"'],
  [
    { url, event_types: ['service.test'] },
    '/event_types/0: expected an event type or `*`, got "service.test"',
  ],
])('%j is refused with the name of the field', async (body, error) => {
  const issue = { in: 'body', pointer: error.split(':')[0], message: error.slice(error.indexOf(':') + 2) };
  expect(await refusal(sandbox, 'createWebhookEndpoint', { body })).toEqual({
    status: 400,
    body: { error, code: 'invalid_data', data: { issues: [issue] } },
  });
});

test.each([
  [{ url: `https://hooks.acme.example/${'a'.repeat(2048)}` }, '/url'],
  [{ url, event_types: [] }, '/event_types'],
  [{ url, description: '' }, '/description'],
  [{ url, status: 'enabled' }, '/status'],
])('bodies that violate the document are refused: %#', async (body, pointer) => {
  const { status, body: refused } = await refusal(sandbox, 'createWebhookEndpoint', { body });
  expect({ status, code: refused.code }).toEqual({ status: 400, code: 'invalid_data' });
  expect(JSON.stringify(refused.data)).toContain(pointer);
});

test('an app can have at most twenty endpoints, listed in pages, newest first', async () => {
  await using own = await startSandbox();
  const ids: string[] = [];
  for (let count = 0; count < 20; count += 1) {
    own.clock.advance(1000);
    ids.unshift((await call(own, 'createWebhookEndpoint', { body: { url } })).body.id);
  }
  expect(await refusal(own, 'createWebhookEndpoint', { body: { url } })).toEqual({
    status: 400,
    body: { error: 'an app can have at most 20 webhook endpoints', code: 'invalid_request' },
  });
  const listed: string[] = [];
  let cursor: string | undefined;
  do {
    const query = cursor === undefined ? { limit: 7 } : { limit: 7, cursor };
    const { body } = await call(own, 'listWebhookEndpoints', { query });
    listed.push(...body.data.map(({ id }) => id));
    cursor = body.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(listed).toEqual(ids);
  expect((await refusal(own, 'listWebhookEndpoints', { query: { cursor: 'unknown' } })).body.error).toBe(
    'cursor: expected the `next_cursor` of a previous page',
  );
});

test('more than five valid secrets are refused until earlier ones expire', async () => {
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: { url } });
  const path = { endpoint_id: endpoint.id };
  for (let count = 0; count < 4; count += 1) await call(sandbox, 'rotateWebhookSecret', { path, body: {} });
  expect(await refusal(sandbox, 'rotateWebhookSecret', { path, body: {} })).toEqual({
    status: 400,
    body: {
      error: '5 secrets of the endpoint are valid; wait for one to expire or rotate with an overlap of 0',
      code: 'invalid_state',
    },
  });
  await call(sandbox, 'rotateWebhookSecret', { path, body: { overlap_seconds: 0 } });
  const [{ count }] = (await sandbox.database.orm.em
    .fork()
    .execute(`select count(*) as count from webhook_secrets where endpoint_id = '${endpoint.id}'`)) as [
    { count: number },
  ];
  expect(count).toBe(1);
});
