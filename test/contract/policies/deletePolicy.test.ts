import { expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messagePolicy } from './rules.ts';

const inUse = {
  status: 400,
  body: {
    error: 'the policy cannot be deleted: a wallet or one of its signers uses it',
    code: 'invalid_state',
  },
};

async function makePolicy(sandbox: TestSandbox): Promise<string> {
  return (await call(sandbox, 'createPolicy', { body: messagePolicy(['one']) })).body.id;
}

test('refused while a wallet uses it', async () => {
  await using sandbox = await startSandbox();
  const policy_id = await makePolicy(sandbox);
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy_id] },
  });
  expect(await refusal(sandbox, 'deletePolicy', { path: { policy_id } })).toEqual(inUse);
  expect((await call(sandbox, 'getPolicy', { path: { policy_id } })).body.id).toBe(policy_id);

  const path = { wallet_id: wallet.body.id };
  await call(sandbox, 'updateWallet', { path, body: { policy_ids: [] } });
  await call(sandbox, 'deletePolicy', { path: { policy_id } });
});

test('refused while an archived wallet uses it, which may be restored', async () => {
  await using sandbox = await startSandbox();
  const policy_id = await makePolicy(sandbox);
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy_id] },
  });
  await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.body.id } });
  expect(await refusal(sandbox, 'deletePolicy', { path: { policy_id } })).toEqual(inUse);
});

test('refused while a signer of a wallet uses it', async () => {
  await using sandbox = await startSandbox();
  const policy_id = await makePolicy(sandbox);
  const quorum = await call(sandbox, 'createKeyQuorum', { body: { public_keys: [bobKey.publicKey] } });
  const signers = [{ signer_id: quorum.body.id, override_policy_ids: [policy_id] }];
  const owner = { public_key: aliceKey.publicKey };
  const body = { chain_type: 'ethereum', owner, additional_signers: signers } as const;
  const wallet = await call(sandbox, 'createWallet', { body });
  expect(await refusal(sandbox, 'deletePolicy', { path: { policy_id } })).toEqual(inUse);

  const path = { wallet_id: wallet.body.id };
  const signed = { signWith: [aliceKey.privateKey] };
  await call(sandbox, 'updateWallet', { path, body: { additional_signers: [] } }, signed);
  await call(sandbox, 'deletePolicy', { path: { policy_id } });
});

test('a wallet cannot use a deleted policy or one of another chain', async () => {
  await using sandbox = await startSandbox();
  const policy_id = await makePolicy(sandbox);
  const onSolana = await refusal(sandbox, 'createWallet', {
    body: { chain_type: 'solana', policy_ids: [policy_id] },
  });
  expect(onSolana).toMatchObject({
    status: 400,
    body: {
      error: '/policy_ids/0: the policy is for ethereum, the wallet is on solana',
      code: 'invalid_data',
    },
  });
  await call(sandbox, 'deletePolicy', { path: { policy_id } });
  const gone = await refusal(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy_id] },
  });
  expect(gone).toMatchObject({
    status: 400,
    body: { error: `/policy_ids/0: no policy \`${policy_id}\``, code: 'invalid_data' },
  });
});
