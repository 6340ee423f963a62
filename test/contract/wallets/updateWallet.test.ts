import { expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const path = { wallet_id: 'ext_wal_acme-ethereum' };

test('a wallet without an owner is changed with the app secret only', async () => {
  await using sandbox = await startSandbox();
  const { body: before } = await call(sandbox, 'getWallet', { path });
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  const renamed = await call(sandbox, 'updateWallet', {
    path,
    body: { display_name: 'Renamed', additional_signers: [{ signer_id: quorum.id }] },
  });
  expect(renamed.body).toEqual({
    ...before,
    display_name: 'Renamed',
    additional_signers: [{ signer_id: quorum.id }],
  });
  const cleared = await call(sandbox, 'updateWallet', {
    path,
    body: { display_name: null, additional_signers: [] },
  });
  const { display_name: _, ...unnamed } = before;
  expect(cleared.body).toEqual(unnamed);
  expect((await call(sandbox, 'getWallet', { path })).body).toEqual(unnamed);
});

test("setting the first owner needs no signature; changing or removing it needs the owner's", async () => {
  await using sandbox = await startSandbox();
  const owned = await call(sandbox, 'updateWallet', {
    path,
    body: { owner: { public_key: aliceKey.publicKey } },
  });
  expect(owned.body.owner_id).not.toBeNull();

  const toBob = { owner: { public_key: bobKey.publicKey } };
  expect(await refusal(sandbox, 'updateWallet', { path, body: toBob })).toMatchObject({
    status: 401,
    body: { code: 'missing_or_empty_authorization_header' },
  });
  const byBob = await refusal(
    sandbox,
    'updateWallet',
    { path, body: toBob },
    { signWith: [bobKey.privateKey] },
  );
  expect(byBob).toMatchObject({ status: 401, body: { code: 'zero_correct_authorization_signatures' } });

  const passed = await call(
    sandbox,
    'updateWallet',
    { path, body: toBob },
    { signWith: [aliceKey.privateKey] },
  );
  expect(passed.body.owner_id).not.toBe(owned.body.owner_id);
  const freed = await call(
    sandbox,
    'updateWallet',
    { path, body: { owner: null } },
    { signWith: [bobKey.privateKey] },
  );
  expect(freed.body.owner_id).toBeNull();
});

test('an invalid change is refused and changes nothing', async () => {
  await using sandbox = await startSandbox();
  const { body: before } = await call(sandbox, 'getWallet', { path });
  const cases = [
    { body: {}, error: 'body: must have at least 1 property' },
    { body: { external_id: 'other' }, error: '/external_id: is already set and cannot be changed' },
    {
      body: { display_name: 'Half', additional_signers: [{ signer_id: 'z'.repeat(24) }] },
      error: 'Unable to find the specified key quorums for this app.',
    },
  ];
  for (const { body, error } of cases) {
    expect(await refusal(sandbox, 'updateWallet', { path, body })).toMatchObject({
      status: 400,
      body: { error, code: 'invalid_data' },
    });
  }
  expect((await call(sandbox, 'getWallet', { path })).body).toEqual(before);
});

test('an external id is set on creation, or later if the app allows it', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  const late = { path: { wallet_id: wallet.id }, body: { external_id: 'late' } };
  expect(await refusal(sandbox, 'updateWallet', late)).toMatchObject({
    status: 400,
    body: { error: '/external_id: can only be set when the wallet is created' },
  });
  const { statusCode } = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox/apps/${sandbox.appId}`,
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ settings: { late_external_id: true } }),
  });
  expect(statusCode).toBe(200);
  const taken = await refusal(sandbox, 'updateWallet', { ...late, body: { external_id: 'acme-ethereum' } });
  expect(taken).toEqual({
    status: 409,
    body: {
      error: 'a wallet with the external id `acme-ethereum` already exists',
      code: 'resource_conflict',
    },
  });
  expect((await call(sandbox, 'updateWallet', late)).body).toEqual({ ...wallet, external_id: 'late' });
});
