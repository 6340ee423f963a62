import { expect, test } from 'vitest';
import { chains } from '../../../src/engine/signing/chains.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

async function makeCarol(sandbox: TestSandbox): Promise<string> {
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
  });
  return body.id;
}

test('wallets of every chain type are created; all but spark are linked', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeCarol(sandbox);
  const all = Object.keys(chains) as (keyof typeof chains)[];
  const { body } = await call(sandbox, 'pregenerateUserWallets', {
    path: { user_id },
    body: { wallets: all.map((chain_type) => ({ chain_type })) },
  });
  const linked = body.linked_accounts.slice(1) as {
    chain_type: string;
    wallet_index: number;
    chain_id: string;
  }[];
  expect(linked.map((account) => account.chain_type)).toEqual(all.filter((chain) => chain !== 'spark'));
  for (const account of linked) {
    expect(account.wallet_index).toBe(0);
    // CAIP-2.
    expect(account.chain_id).toMatch(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/);
  }
  const { body: wallets } = await call(sandbox, 'listWallets', { query: { user_id } });
  expect(wallets.data).toHaveLength(all.length);
});

test('indexes continue, and a wallet with signers is marked as delegated', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeCarol(sandbox);
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [user_id] } });
  const wallets = [{ chain_type: 'ethereum' as const }, { chain_type: 'solana' as const }];
  await call(sandbox, 'pregenerateUserWallets', { path: { user_id }, body: { wallets } });
  const { body } = await call(sandbox, 'pregenerateUserWallets', {
    path: { user_id },
    body: { wallets: [{ chain_type: 'ethereum', additional_signers: [{ signer_id: quorum.id }] }] },
  });
  expect(body.linked_accounts.slice(1)).toMatchObject([
    { chain_type: 'ethereum', wallet_index: 0, delegated: false },
    { chain_type: 'solana', wallet_index: 0, delegated: false },
    { chain_type: 'ethereum', wallet_index: 1, delegated: true },
  ]);
});

test('all are created or none', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeCarol(sandbox);
  const before = (await call(sandbox, 'listWallets', {})).body;
  const { status, body } = await refusal(sandbox, 'pregenerateUserWallets', {
    path: { user_id },
    body: {
      wallets: [
        { chain_type: 'ethereum', external_id: 'x' },
        { chain_type: 'solana', external_id: 'x' },
      ],
    },
  });
  expect({ status, code: body.code }).toEqual({ status: 409, code: 'resource_conflict' });
  expect((await call(sandbox, 'listWallets', {})).body).toEqual(before);
  expect((await call(sandbox, 'getUser', { path: { user_id } })).body.linked_accounts).toHaveLength(1);
});

test('an unknown user, no wallets, more than a hundred', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeCarol(sandbox);
  const wallet = { chain_type: 'xrpl' as const };
  const absent = await refusal(sandbox, 'pregenerateUserWallets', {
    path: { user_id: 'unknown' },
    body: { wallets: [wallet] },
  });
  expect(absent).toEqual({ status: 404, body: { error: 'User not found' } });
  for (const wallets of [[], Array.from({ length: 101 }, () => wallet), [{ chain_type: 'dogecoin' }]]) {
    const refused = await refusal(sandbox, 'pregenerateUserWallets', {
      path: { user_id },
      body: { wallets },
    });
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 400,
      code: 'invalid_data',
    });
  }
});
