import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox } from '../../support/sandbox.ts';

const absent = { status: 404, body: { error: 'User not found' } };

test('a user is found by the id with and without its prefix', async () => {
  await using sandbox = await startSandbox();
  const made = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'carol@example.com' }] },
  });
  const { id } = made.body;
  for (const user_id of [id, id.slice('did:service:'.length)]) {
    expect((await call(sandbox, 'getUser', { path: { user_id } })).body).toEqual(made.body);
  }
});

test('a user of another app, an unknown user and an invalid id are not found', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'carol@example.com' }] },
  });
  const other = await asOtherApp(sandbox);
  expect(await refusal(other, 'getUser', { path: { user_id: body.id } })).toEqual(absent);
  for (const user_id of [`did:service:c${'0'.repeat(24)}`, 'did:service:', 'did:other:x', '%', `c${"'"}`]) {
    expect(await refusal(sandbox, 'getUser', { path: { user_id } })).toEqual(absent);
  }
});
