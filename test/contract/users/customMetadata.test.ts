import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('POST replaces, PATCH merges, an empty object clears', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }],
      custom_metadata: { a: 1, b: 'x' },
    },
  });
  const path = { user_id: body.id };
  const patch = (custom_metadata: Record<string, string | number | boolean>) =>
    call(sandbox, 'updateUserCustomMetadata', { path, body: { custom_metadata } });
  const post = (custom_metadata: Record<string, string | number | boolean>) =>
    call(sandbox, 'setUserCustomMetadata', { path, body: { custom_metadata } });

  expect((await patch({ b: true, c: 0.5 })).body).toEqual({
    ...body,
    custom_metadata: { a: 1, b: true, c: 0.5 },
  });
  expect((await patch({})).body.custom_metadata).toEqual({ a: 1, b: true, c: 0.5 });
  expect((await post({ d: 'é' })).body).toEqual({ ...body, custom_metadata: { d: 'é' } });
  const odd = JSON.parse('{"__proto__":"x","constructor":1,"":false,"\\u0000":"\\ud800"}');
  expect(JSON.stringify((await post(odd)).body.custom_metadata)).toBe(JSON.stringify(odd));
  const { custom_metadata: _, ...bare } = body;
  expect((await post({})).body).toEqual(bare);
  expect((await call(sandbox, 'getUser', { path })).body).toEqual(bare);
});

test('the limit of 1024 bytes applies to the result', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }],
      custom_metadata: { a: 'x'.repeat(500) },
    },
  });
  const path = { user_id: body.id };
  const refused = await refusal(sandbox, 'updateUserCustomMetadata', {
    path,
    body: { custom_metadata: { b: 'x'.repeat(600) } },
  });
  expect(refused).toEqual({
    status: 400,
    body: {
      error: '/custom_metadata: must have at most 1024 bytes of JSON, has 1115',
      code: 'invalid_data',
      data: {
        issues: [
          {
            in: 'body',
            pointer: '/custom_metadata',
            message: 'must have at most 1024 bytes of JSON, has 1115',
          },
        ],
      },
    },
  });
  expect((await call(sandbox, 'getUser', { path })).body).toEqual(body);
});

test('nested values, null and other types are refused, and so is an unknown user', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
  });
  for (const id of ['setUserCustomMetadata', 'updateUserCustomMetadata'] as const) {
    for (const custom_metadata of [{ a: null }, { a: {} }, { a: [] }, [], null, 'x']) {
      const refused = await refusal(sandbox, id, { path: { user_id: body.id }, body: { custom_metadata } });
      expect({ status: refused.status, code: refused.body.code }).toEqual({
        status: 400,
        code: 'invalid_data',
      });
    }
    const absent = await refusal(sandbox, id, {
      path: { user_id: 'unknown' },
      body: { custom_metadata: {} },
    });
    expect(absent).toEqual({ status: 404, body: { error: 'User not found' } });
  }
});
