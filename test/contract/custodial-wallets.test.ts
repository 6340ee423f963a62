import { expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import { call, refusal } from '../support/call.ts';
import { startSandbox } from '../support/sandbox.ts';

const customer = { provider: 'bridge', provider_user_id: 'cust_8f14e45fceea167a' } as const;

test('a custodian opens a wallet, which can be read like any other', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createCustodialWallet', {
    body: { ...customer, chain: 'base' },
  });
  expect(made).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    chain: 'base',
    custody: customer,
    owner_id: null,
    policy_ids: [],
    additional_signers: [],
  });
  const { body: found } = await call(sandbox, 'getWallet', { path: { wallet_id: made.id } });
  expect(found).toMatchObject({ ...made, chain_type: 'ethereum', custody: customer, exported_at: null });
  const { body: other } = await call(sandbox, 'createCustodialWallet', {
    body: { ...customer, chain: 'base' },
  });
  expect(other.address).not.toBe(made.address);
});

test.each([
  [{}, 'base', 'ethereum'],
  [{ chain_type: 'ethereum' }, 'base', 'ethereum'],
  [{ chain_type: 'solana' }, 'solana', 'solana'],
  [{ chain: 'tempo', chain_type: 'ethereum' }, 'tempo', 'ethereum'],
  [{ chain: 'solana' }, 'solana', 'solana'],
] as const)('a request for %o opens a wallet on %s', async (asked, chain, chainType) => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createCustodialWallet', { body: { ...customer, ...asked } });
  expect(body.chain).toBe(chain);
  // The deprecated field comes back if the caller gave it.
  expect(body.chain_type).toBe('chain_type' in asked ? asked.chain_type : undefined);
  const found = await call(sandbox, 'getWallet', { path: { wallet_id: body.id } });
  expect(found.body.chain_type).toBe(chainType);
});

test('it can have an owner, a policy and signers', async () => {
  await using sandbox = await startSandbox();
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'Nothing', chain_type: 'ethereum', rules: [] },
  });
  const { body } = await call(sandbox, 'createCustodialWallet', {
    body: {
      ...customer,
      owner: { public_key: aliceKey.publicKey },
      policy_ids: [policy.id],
      additional_signers: [{ signer_id: quorum.id }],
    },
  });
  expect(body).toMatchObject({
    owner_id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    policy_ids: [policy.id],
    additional_signers: [{ signer_id: quorum.id }],
  });
  // Resources that it refers to cannot be deleted.
  const refused = await refusal(sandbox, 'deletePolicy', { path: { policy_id: policy.id } });
  expect(refused.status).toBe(400);
});

test('its owner changes like that of any other wallet', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createCustodialWallet', { body: customer });
  const path = { wallet_id: made.id };
  const owned = await call(sandbox, 'updateWallet', {
    ...{ path, body: { owner: { public_key: aliceKey.publicKey } } },
  });
  expect(owned.body.owner_id).toMatch(/^[a-z][0-9a-z]{23}$/);
  const body = { owner: { public_key: bobKey.publicKey } };
  expect(await refusal(sandbox, 'updateWallet', { path, body })).toMatchObject({ status: 401 });
});

test('no operation uses its key', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createCustodialWallet', { body: customer });
  const path = { wallet_id: wallet.id };
  const rpc = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } };
  const raw = { params: { hash: `0x${'11'.repeat(32)}` } };
  for (const [operation, body, error] of [
    ['walletRpc', rpc, 'a custodial wallet does not support rpc'],
    ['rawSignWallet', raw, 'a custodial wallet does not support raw_sign'],
    ['archiveWallet', undefined, 'a custodial wallet cannot be archived'],
  ] as const) {
    expect(await refusal(sandbox, operation, { path, body })).toEqual({
      status: 400,
      body: { error, code: 'not_supported' },
    });
  }
  const owner = { public_key: aliceKey.publicKey };
  const { body: owned } = await call(sandbox, 'createCustodialWallet', { body: { ...customer, owner } });
  const proposal = { path: { wallet_id: owned.id }, body: rpc };
  expect(await refusal(sandbox, 'createWalletRpcIntent', proposal)).toEqual({
    status: 400,
    body: { error: 'a custodial wallet does not support rpc', code: 'not_supported' },
  });
});

test.each([
  [
    { provider_user_id: 'unknown_customer' },
    '/provider_user_id: the custodian has no customer `unknown_customer`',
  ],
  [{ provider_user_id: 'a\0b' }, '/provider_user_id: must not contain U+0000'],
  [{ chain: 'solana', chain_type: 'ethereum' }, '/chain_type: `solana` is a chain of solana wallets'],
  [{ policy_ids: ['z'.repeat(24)] }, `/policy_ids/0: no policy \`${'z'.repeat(24)}\``],
])('%o is refused', async (change, error) => {
  await using sandbox = await startSandbox();
  const { status, body } = await refusal(sandbox, 'createCustodialWallet', {
    body: { ...customer, ...change },
  });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error,
  });
  expect(
    (await call(sandbox, 'listWallets', {})).body.data.some(({ custody }) => custody !== undefined),
  ).toBe(false);
});

test('a replay under an idempotency key opens no second wallet', async () => {
  await using sandbox = await startSandbox();
  const first = await call(sandbox, 'createCustodialWallet', { body: customer }, { idempotencyKey: 'one' });
  const again = await call(sandbox, 'createCustodialWallet', { body: customer }, { idempotencyKey: 'one' });
  expect(again.body).toEqual(first.body);
});
