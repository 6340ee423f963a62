import { generateKeyPairSync } from 'node:crypto';
import { base58 } from '@scure/base';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../../mocks/authorization-keys.ts';
import type { Tables } from '../../../../src/domain/tables.ts';
import { chains } from '../../../../src/engine/signing/chains.ts';
import type { WalletChainType } from '../../../../src/generated/schemas.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { accountOf, ethereumAddressOf, exportedText } from './foreign-wallets.ts';
import { makeRecipient } from './hpke-client.ts';
import { importKey } from './importing.ts';

const nowMs = Date.UTC(2026, 0, 1);
const alices = { wallet_id: 'ext_wal_alice' };
const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const signedByAlice = { signWith: [aliceKey.privateKey] };

/** The recorded exports, oldest first. */
async function eventsOf(sandbox: TestSandbox, walletId: string): Promise<unknown[]> {
  const rows = await sandbox.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select('payload')
    .where('resource_id', '=', walletId)
    .orderBy('sequence')
    .execute();
  return rows
    .map(({ payload }) => JSON.parse(payload) as { type: string })
    .filter(({ type }) => /export/.test(type));
}

test.each(['ethereum', 'solana', 'xrpl'] as const)(
  'the phrase of a new %s wallet derives its key and address',
  async (chain_type) => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type } });
    const path = { wallet_id: wallet.id };
    const recipient = makeRecipient();
    const sealedTo = { encryption_type: 'HPKE', recipient_public_key: recipient.pem } as const;
    const { body: key } = await call(sandbox, 'exportWallet', { path, body: sealedTo });
    const { body: words } = await call(sandbox, 'exportWallet', {
      path,
      body: { ...sealedTo, export_seed_phrase: true },
    });
    const phrase = await recipient.open(words);
    expect(phrase).toMatch(/^([a-z]+ ){11}[a-z]+$/);
    const account = await accountOf[chain_type](phrase, 0);
    expect(account.address).toBe(wallet.address);
    expect(await recipient.open(key)).toBe(exportedText(chain_type, account.secret));
  },
);

const withoutPhrase = (Object.keys(chains) as WalletChainType[]).filter((chain) => !chains[chain].fromPhrase);

test.each(withoutPhrase)('a new %s wallet exports its key and has no phrase', async (chain_type) => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type } });
  const path = { wallet_id: wallet.id };
  const recipient = makeRecipient();
  const sealedTo = { encryption_type: 'HPKE', recipient_public_key: recipient.spki } as const;
  const { body } = await call(sandbox, 'exportWallet', { path, body: sealedTo });
  expect(await recipient.open(body)).toMatch(/^[0-9a-f]{64}$/);
  const message = 'the wallet was not made from a seed phrase';
  expect(
    await refusal(sandbox, 'exportWallet', { path, body: { ...sealedTo, export_seed_phrase: true } }),
  ).toEqual({
    status: 400,
    body: {
      error: `/export_seed_phrase: ${message}`,
      code: 'invalid_request',
      data: { issues: [{ in: 'body', pointer: '/export_seed_phrase', message }] },
    },
  });
});

test('rpc exports the same as the export operation', async () => {
  await using sandbox = await startSandbox();
  const recipient = makeRecipient();
  const params = { encryption_type: 'HPKE', recipient_public_key: recipient.spki } as const;
  const opened: Record<string, string> = {};
  for (const method of ['exportPrivateKey', 'exportSeedPhrase'] as const) {
    const { body } = await call(sandbox, 'walletRpc', {
      path: acme,
      body: { method, address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94', params },
    });
    expect(body).toEqual({
      method,
      data: { encryption_type: 'HPKE', ciphertext: expect.any(String), encapsulated_key: expect.any(String) },
    });
    opened[method] = await recipient.open(body.data as { ciphertext: string; encapsulated_key: string });
  }
  const { body: direct } = await call(sandbox, 'exportWallet', { path: acme, body: params });
  expect(opened.exportPrivateKey).toBe(await recipient.open(direct));
  const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
  const account = await accountOf.ethereum(opened.exportSeedPhrase!, 0);
  expect(account.address).toBe(wallet.address);
  expect(ethereumAddressOf(Buffer.from(opened.exportPrivateKey!, 'hex'))).toBe(wallet.address);
});

test('rpc names the method when there is no phrase', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'tron' } });
  const body = {
    method: 'exportSeedPhrase',
    address: wallet.address,
    params: { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki },
  };
  expect(await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body })).toMatchObject({
    status: 400,
    body: { code: 'invalid_request', error: '/method: the wallet was not made from a seed phrase' },
  });
});

test('an export is stored and its event recorded once', async () => {
  await using sandbox = await startSandbox();
  const { body: owned } = await call(sandbox, 'getWallet', { path: alices });
  const request = { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki } as const;
  sandbox.clock.advance(5000);
  await call(
    sandbox,
    'exportWallet',
    { path: alices, body: { ...request, export_type: 'display' } },
    signedByAlice,
  );
  await call(
    sandbox,
    'exportWallet',
    { path: alices, body: { ...request, export_seed_phrase: true } },
    signedByAlice,
  );
  expect(await eventsOf(sandbox, owned.id)).toEqual([
    {
      type: 'wallet.private_key_export',
      ...{ wallet_id: owned.id, wallet_address: owned.address, export_source: 'display' },
    },
    {
      type: 'wallet.seed_phrase_export',
      ...{ wallet_id: owned.id, wallet_address: owned.address },
    },
  ]);
  const { body: after } = await call(sandbox, 'getWallet', { path: alices });
  expect(after).toEqual({ ...owned, exported_at: nowMs + 5000 });
});

test('an export by the owning user names the user', async () => {
  const login = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwtPublicKeyPem = login.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  await using sandbox = await startSandbox({ jwtPublicKeyPem });
  const { body: user } = await call(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'alice' } });
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'solana', owner: { user_id: user.id } },
  });
  const token = await new SignJWT({ sub: 'alice' })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setExpirationTime(nowMs / 1000 + 3600)
    .sign(login.privateKey);
  const { body: key } = await call(sandbox, 'authenticateWallets', { body: { user_jwt: token } });
  const recipient = makeRecipient();
  const { body } = await call(
    sandbox,
    'exportWallet',
    {
      path: { wallet_id: wallet.id },
      body: { encryption_type: 'HPKE', recipient_public_key: recipient.spki, export_type: 'client' },
    },
    { signWith: [(key as { authorization_key: string }).authorization_key] },
  );
  expect(base58.decode(await recipient.open(body))).toHaveLength(64);
  expect(await eventsOf(sandbox, wallet.id)).toEqual([
    {
      type: 'wallet.private_key_export',
      ...{ user_id: user.id, wallet_id: wallet.id, wallet_address: wallet.address, export_source: 'client' },
    },
  ]);
});

test('only the owner can export: not an additional signer, another key or an unsigned request', async () => {
  await using sandbox = await startSandbox();
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  await call(
    sandbox,
    'updateWallet',
    { path: alices, body: { additional_signers: [{ signer_id: quorum.id, override_policy_ids: [] }] } },
    signedByAlice,
  );
  const { body: wallet } = await call(sandbox, 'getWallet', { path: alices });
  const recipient = makeRecipient();
  const params = { encryption_type: 'HPKE', recipient_public_key: recipient.spki } as const;
  const rpc = { method: 'exportPrivateKey', address: wallet.address, params } as const;
  const requests = [
    ['exportWallet', { path: alices, body: params }],
    ['walletRpc', { path: alices, body: rpc }],
  ] as const;
  for (const [operation, request] of requests) {
    expect(await refusal(sandbox, operation, request)).toMatchObject({
      status: 401,
      body: { code: 'missing_or_empty_authorization_header' },
    });
    for (const { privateKey } of [bobKey, carolKey]) {
      expect(await refusal(sandbox, operation, request, { signWith: [privateKey] })).toMatchObject({
        status: 401,
        body: { code: 'zero_correct_authorization_signatures' },
      });
    }
  }
  expect((await call(sandbox, 'getWallet', { path: alices })).body.exported_at).toBeNull();
  expect(await eventsOf(sandbox, wallet.id)).toEqual([]);
  const { body } = await call(sandbox, 'exportWallet', { path: alices, body: params }, signedByAlice);
  expect(ethereumAddressOf(Buffer.from(await recipient.open(body), 'hex'))).toBe(wallet.address);
});

test.each([
  ['no key at all', 'nonsense'],
  ['a point that is not on the curve', `MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE${'A'.repeat(86)}==`],
  [
    'a bare point',
    'BFn9NvOLJwa8W18t4u0ckTSdIwqlJ2jFkNfrRYSfa8KietdJocw/Dq96JkgNMBte9Dy9SDDD+xR5dc/ycCbiLLI=',
  ],
  ['a key of another curve', 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE='],
])('a recipient key that is %s is refused', async (_, recipient_public_key) => {
  await using sandbox = await startSandbox();
  const params = { encryption_type: 'HPKE', recipient_public_key };
  expect(await refusal(sandbox, 'exportWallet', { path: acme, body: params })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data', error: expect.stringMatching(/^\/recipient_public_key: /) },
  });
  const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
  const rpc = { method: 'exportPrivateKey', address: wallet.address, params };
  expect(await refusal(sandbox, 'walletRpc', { path: acme, body: rpc })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data', error: expect.stringMatching(/^\/params\/recipient_public_key: /) },
  });
  expect(wallet.exported_at).toBeNull();
});

test('an absent, archived or custodial wallet is not exported', async () => {
  await using sandbox = await startSandbox();
  const body = { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki };
  const missing = await refusal(sandbox, 'exportWallet', { path: { wallet_id: 'z'.repeat(24) }, body });
  expect(missing).toEqual({ status: 404, body: { error: 'Wallet not found' } });
  const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
  await call(sandbox, 'archiveWallet', { path: acme });
  expect(await refusal(sandbox, 'exportWallet', { path: acme, body })).toEqual(missing);

  const { body: custodial } = await call(sandbox, 'createCustodialWallet', {
    body: { provider: 'bridge', provider_user_id: 'cust_1' },
  });
  const path = { wallet_id: custodial.id };
  const rpc = { method: 'exportPrivateKey', address: wallet.address, params: body };
  const raw = { params: { hash: `0x${'11'.repeat(32)}` } };
  const requests = [
    ['exportWallet', body, 'a custodial wallet cannot be exported'],
    ['walletRpc', rpc, 'a custodial wallet does not support rpc'],
    ['rawSignWallet', raw, 'a custodial wallet does not support raw_sign'],
  ] as const;
  for (const [operation, sent, error] of requests) {
    expect(await refusal(sandbox, operation, { path, body: sent })).toEqual({
      status: 400,
      body: { error, code: 'not_supported' },
    });
  }
});

test('an imported wallet signs with the key it was given', async () => {
  await using sandbox = await startSandbox();
  const account = await accountOf.ethereum('test test test test test test test test test test test junk', 7);
  const wallet = await importKey(sandbox, { chain_type: 'ethereum', ...account });
  const { recoverMessageAddress } = await import('viem');
  const { body } = await call(sandbox, 'walletRpc', {
    path: { wallet_id: wallet.id },
    body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
  });
  const { signature } = body.data as { signature: `0x${string}` };
  expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(account.address);
});
