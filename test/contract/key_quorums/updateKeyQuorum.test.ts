import { expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const [alice, bob, carol] = [aliceKey, bobKey, carolKey];

test('a change requires the old members; afterwards the new ones count', async () => {
  await using sandbox = await startSandbox();
  const made = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 2 },
  });
  const path = { key_quorum_id: made.body.id };
  const change = { path, body: { public_keys: [bob.publicKey, carol.publicKey] } };

  const early = await refusal(sandbox, 'updateKeyQuorum', change, {
    signWith: [bob.privateKey, carol.privateKey],
  });
  expect([early.status, early.body.code]).toEqual([401, 'insufficient_correct_authorization_signatures']);

  const changed = await call(sandbox, 'updateKeyQuorum', change, {
    signWith: [alice.privateKey, bob.privateKey],
  });
  expect(changed.body).toEqual({
    ...made.body,
    authorization_keys: [
      { public_key: bob.publicKey, display_name: null },
      { public_key: carol.publicKey, display_name: null },
    ],
  });

  const rename = { path, body: { display_name: 'Pair', authorization_threshold: 1 } };
  const late = await refusal(sandbox, 'updateKeyQuorum', rename, {
    signWith: [alice.privateKey, bob.privateKey],
  });
  expect([late.status, late.body.code]).toEqual([401, 'insufficient_correct_authorization_signatures']);
  const renamed = await call(sandbox, 'updateKeyQuorum', rename, {
    signWith: [carol.privateKey, bob.privateKey],
  });
  expect(renamed.body).toEqual({ ...changed.body, display_name: 'Pair', authorization_threshold: 1 });
});

test('keeps users if only keys are given, and removes them with an empty list', async () => {
  await using sandbox = await startSandbox();
  const user = await call(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'alice' } });
  const made = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [alice.publicKey], user_ids: [user.body.id], authorization_threshold: 1 },
  });
  const path = { key_quorum_id: made.body.id };
  const swapped = await call(
    sandbox,
    'updateKeyQuorum',
    { path, body: { public_keys: [bob.publicKey] } },
    { signWith: [alice.privateKey] },
  );
  expect(swapped.body).toMatchObject({ user_ids: [user.body.id] });
  const alone = await call(
    sandbox,
    'updateKeyQuorum',
    { path, body: { user_ids: [] } },
    { signWith: [bob.privateKey] },
  );
  expect(alone.body).toEqual({
    id: made.body.id,
    display_name: null,
    authorization_threshold: 1,
    authorization_keys: [{ public_key: bob.publicKey, display_name: null }],
    user_ids: null,
  });
});

test('refuses a change that leaves no members, or a threshold above their number', async () => {
  await using sandbox = await startSandbox();
  const made = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 2 },
  });
  const path = { key_quorum_id: made.body.id };
  for (const [body, error] of [
    [{}, /./],
    [{ public_keys: [] }, /expected at least one of/],
    [
      { authorization_threshold: 3 },
      /^\/authorization_threshold: expected at most 2, the number of members, got 3$/,
    ],
    [
      { public_keys: [carol.publicKey] },
      /^\/authorization_threshold: expected at most 1, the number of members, got 2$/,
    ],
    [{ key_quorum_ids: [made.body.id] }, /^\/key_quorum_ids: a key quorum cannot be a member of itself$/],
  ] as const) {
    const options = { signWith: [alice.privateKey, bob.privateKey] };
    const answer = await refusal(sandbox, 'updateKeyQuorum', { path, body }, options);
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringMatching(error) },
    });
  }
  expect((await call(sandbox, 'getKeyQuorum', { path })).body).toEqual(made.body);
});

test('can be changed 64 times, and is then replaced by another one', async () => {
  await using sandbox = await startSandbox();
  const made = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 1 },
  });
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner_id: made.body.id },
  });
  const path = { key_quorum_id: made.body.id };
  const signWith = [alice.privateKey];
  const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
  const use = { path: { wallet_id: wallet.body.id }, body: hello };
  const other = (index: number) => (index % 2 === 0 ? carol : bob).publicKey;
  for (let index = 0; index < 64; index += 1) {
    const body = { public_keys: [alice.publicKey, other(index)] };
    await call(sandbox, 'updateKeyQuorum', { path, body }, { signWith });
    // The vault follows some changes by the way, and the others at the end.
    if (index === 20) await call(sandbox, 'walletRpc', use, { signWith: [carol.privateKey] });
  }
  const change = { path, body: { public_keys: [alice.publicKey] } };
  const refused = await refusal(sandbox, 'updateKeyQuorum', change, { signWith });
  expect([refused.status, refused.body.code]).toEqual([400, 'invalid_state']);

  // What does not change who may sign is not counted.
  await call(sandbox, 'updateKeyQuorum', { path, body: { display_name: 'Treasury' } }, { signWith });
  const [first, second] = [bob, carol].map(({ privateKey }) => ({ signWith: [privateKey] }));
  await call(sandbox, 'walletRpc', use, first);
  const former = await refusal(sandbox, 'walletRpc', use, second!);
  expect(former.body.code).toBe('zero_correct_authorization_signatures');
});
