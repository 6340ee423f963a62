import { verifyTypedData } from 'ethers';
import { expect, test } from 'vitest';
import { p256KeyPairFromSeed } from '../../../src/engine/crypto/p256.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

// A small request that takes seconds of CPU time would block all others. Oversized input is
// refused at the limit, before the rest is processed.

test('a key quorum of tens of thousands of members is refused quickly', async () => {
  await using sandbox = await startSandbox();
  const userIds = Array.from({ length: 40_000 }, (_, index) => `did:service:${index}`);
  const { status, body } = await refusal(sandbox, 'createKeyQuorum', { body: { user_ids: userIds } });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error: '/user_ids: must have at most 100 items',
  });
});

test('too many additional signers of a wallet are refused as invalid', async () => {
  await using sandbox = await startSandbox();
  const policy = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'empty', chain_type: 'ethereum', rules: [] },
  });
  const signer = { signer_id: 'a'.repeat(24), override_policy_ids: [policy.body.id] };
  const { status, body } = await refusal(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', additional_signers: Array.from({ length: 9_000 }, () => signer) },
  });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error: '/additional_signers: must have at most 100 items',
  });
});

test('the signers of a wallet have at most 600 members in all', async () => {
  await using sandbox = await startSandbox();
  const publicKeys = Array.from(
    { length: 100 },
    (_, index) => p256KeyPairFromSeed(new Uint8Array(48).fill(index + 1)).publicKey,
  );
  const quorums: string[] = [];
  for (let count = 0; count < 7; count += 1) {
    quorums.push((await call(sandbox, 'createKeyQuorum', { body: { public_keys: publicKeys } })).body.id);
  }
  const bodyOf = (ids: string[]) => ({
    chain_type: 'ethereum' as const,
    additional_signers: ids.map((id) => ({ signer_id: id })),
  });
  const { status, body } = await refusal(sandbox, 'createWallet', { body: bodyOf(quorums) });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error: '/additional_signers: expected at most 600 members in all key quorums, got 700',
  });
  await call(sandbox, 'createWallet', { body: bodyOf(quorums.slice(1)) });
});

test('typed data of tens of thousands of values is signed as another library hashes it', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  const typed = {
    domain: {},
    types: { Votes: [{ name: 'votes', type: 'uint256[]' }] },
    message: { votes: Array.from({ length: 90_000 }, () => 1) },
  };
  const { body } = await call(sandbox, 'walletRpc', {
    path: { wallet_id: wallet.id },
    body: { method: 'eth_signTypedData_v4', params: { typed_data: { ...typed, primary_type: 'Votes' } } },
  });
  const { signature } = (body as { data: { signature: string } }).data;
  expect(verifyTypedData(typed.domain, typed.types, typed.message, signature)).toBe(wallet.address);
});
