import { PublicKey } from '@solana/web3.js';
import { isAddress } from 'viem';
import { expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

/** The stopped clock of a sandbox. */
const nowMs = Date.UTC(2026, 0, 1);
const walletId = /^[a-z][0-9a-z]{23}$/;
const missingId = 'z'.repeat(24);

test('only the chain type is required', async () => {
  await using sandbox = await startSandbox();
  const ethereum = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  expect(ethereum.status).toBe(200);
  expect(ethereum.body).toEqual({
    id: expect.stringMatching(walletId),
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    chain_type: 'ethereum',
    owner_id: null,
    policy_ids: [],
    additional_signers: [],
    entity: null,
    created_at: nowMs,
    imported_at: null,
    exported_at: null,
    archived_at: null,
  });
  // viem accepts mixed case only as EIP-55.
  expect(isAddress(ethereum.body.address, { strict: true })).toBe(true);

  const solana = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  expect(PublicKey.isOnCurve(new PublicKey(solana.body.address).toBytes())).toBe(true);
  expect(solana.body).not.toHaveProperty('public_key');
});

test('every field of a wallet is stored and returned', async () => {
  await using sandbox = await startSandbox();
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  const { body } = await call(sandbox, 'createWallet', {
    body: {
      chain_type: 'ethereum',
      display_name: 'Payroll',
      external_id: 'payroll_01',
      owner: { public_key: aliceKey.publicKey },
      additional_signers: [{ signer_id: quorum.id, override_policy_ids: [] }, { signer_id: quorum.id }],
    },
  });
  expect(body).toEqual({
    id: expect.stringMatching(walletId),
    address: expect.stringMatching(/^0x/),
    chain_type: 'ethereum',
    display_name: 'Payroll',
    external_id: 'payroll_01',
    owner_id: expect.stringMatching(walletId),
    policy_ids: [],
    additional_signers: [{ signer_id: quorum.id, override_policy_ids: [] }, { signer_id: quorum.id }],
    entity: null,
    created_at: nowMs,
    imported_at: null,
    exported_at: null,
    archived_at: null,
  });
  expect((await call(sandbox, 'getWallet', { path: { wallet_id: body.id } })).body).toEqual(body);

  const next = await call(sandbox, 'createWallet', {
    body: { chain_type: 'solana', owner: { public_key: aliceKey.publicKey } },
  });
  expect(next.body.owner_id, 'one key, one quorum').toBe(body.owner_id);
});

test('a wallet of every chain type can be created', async () => {
  await using sandbox = await startSandbox();
  const chainTypes = [
    ...([
      'cosmos',
      'stellar',
      'sui',
      'aptos',
      'movement',
      'tron',
      'bitcoin-segwit',
      'bitcoin-taproot',
    ] as const),
    ...(['pearl', 'near', 'ton', 'starknet', 'xrpl', 'spark'] as const),
  ];
  for (const chain_type of chainTypes) {
    const { body } = await call(sandbox, 'createWallet', { body: { chain_type } });
    expect(body, chain_type).toMatchObject({
      chain_type,
      public_key: expect.stringMatching(/^(0x)?[0-9a-f]+$/),
    });
  }
});

test('the external id is unique in the app', async () => {
  await using sandbox = await startSandbox();
  const body = { chain_type: 'ethereum', external_id: 'once' };
  await call(sandbox, 'createWallet', { body: { chain_type: 'solana', external_id: 'once' } });
  expect(await refusal(sandbox, 'createWallet', { body })).toEqual({
    status: 409,
    body: { error: 'a wallet with the external id `once` already exists', code: 'resource_conflict' },
  });
});

test.each([
  {
    what: 'owner and owner_id together',
    body: { owner: { public_key: aliceKey.publicKey }, owner_id: missingId },
    error: '/owner_id: expected either `owner` or `owner_id`, not both',
  },
  {
    what: 'an owner that is not there',
    body: { owner_id: missingId },
    error: 'Unable to find the specified key quorums for this app.',
  },
  {
    what: 'a signer that is not there',
    body: { additional_signers: [{ signer_id: missingId }] },
    error: 'Unable to find the specified key quorums for this app.',
  },
  {
    what: 'a policy that is not there',
    body: { policy_ids: [missingId] },
    error: `/policy_ids/0: no policy \`${missingId}\``,
  },
  {
    what: 'a user that is not there',
    body: { entity: { type: 'user', id: 'did:service:cmissing' } },
    error: '/entity/id: no user `did:service:cmissing` in this app',
  },
])('refuses $what', async ({ body, error }) => {
  await using sandbox = await startSandbox();
  const refused = await refusal(sandbox, 'createWallet', { body: { chain_type: 'ethereum', ...body } });
  expect(refused).toEqual({
    status: 400,
    body: { error, code: 'invalid_data', data: { issues: [expect.any(Object)] } },
  });
});

test('the same seed creates the same wallets', async () => {
  const draw = async (seed: string) => {
    await using sandbox = await startSandbox({ seed, seedData: false });
    const { body } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    return { id: body.id, address: body.address };
  };
  expect(await draw('one')).toEqual(await draw('one'));
  expect(await draw('one')).not.toEqual(await draw('two'));
});
