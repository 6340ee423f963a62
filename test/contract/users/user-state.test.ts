import { expect, test } from 'vitest';
import { call } from '../../support/call.ts';
import { configureUser } from '../../support/other-app.ts';
import { startSandbox } from '../../support/sandbox.ts';

test("state set by the app's pages is shown, including the time of freezing", async () => {
  await using sandbox = await startSandbox();
  const made = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
  });
  const path = { user_id: made.body.id };
  const shown = async () => (await call(sandbox, 'getUser', { path })).body;

  sandbox.clock.advance(60_000);
  const enrolled = await configureUser(sandbox, made.body.id, {
    mfa_methods: ['totp', 'sms', 'totp'],
    has_accepted_terms: true,
    is_guest: true,
    frozen: true,
  });
  expect(enrolled).toEqual({
    id: made.body.id,
    mfa_methods: ['totp', 'sms'],
    has_accepted_terms: true,
    is_guest: true,
    frozen: true,
  });
  const atSeconds = made.body.created_at + 60;
  const changed = {
    ...made.body,
    mfa_methods: [
      { type: 'totp', verified_at: atSeconds },
      { type: 'sms', verified_at: atSeconds },
    ],
    has_accepted_terms: true,
    is_guest: true,
    frozen_at: atSeconds,
  };
  expect(await shown()).toEqual(changed);

  sandbox.clock.advance(60_000);
  await configureUser(sandbox, made.body.id.slice('did:service:'.length), {
    mfa_methods: ['sms', 'passkey'],
    frozen: false,
  });
  const { frozen_at: _, ...thawed } = changed;
  expect(await shown()).toEqual({
    ...thawed,
    mfa_methods: [
      { type: 'sms', verified_at: atSeconds },
      { type: 'passkey', verified_at: atSeconds + 60 },
    ],
  });

  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ payload: string }[]>(
      "select payload from outbox_events where type like 'mfa.%' order by sequence",
    );
  const of = (type: string, method: string) => ({ type, user_id: made.body.id, method });
  expect(rows.map(({ payload }) => JSON.parse(payload))).toEqual([
    of('mfa.enabled', 'totp'),
    of('mfa.enabled', 'sms'),
    of('mfa.enabled', 'passkey'),
    of('mfa.disabled', 'totp'),
  ]);
});

test('an unknown user and an unknown state are refused', async () => {
  await using sandbox = await startSandbox();
  await expect(configureUser(sandbox, 'unknown', { is_guest: true })).rejects.toThrow('404');
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
  });
  for (const state of [{}, { mfa_methods: ['face'] }, { is_guest: null }, { tier: 'gold' }]) {
    await expect(configureUser(sandbox, body.id, state)).rejects.toThrow('400');
  }
});
