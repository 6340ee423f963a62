import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { messagePolicy } from '../../contract/policies/rules.ts';
import { databaseKinds } from '../../support/databases.ts';
import type { TestOperations } from '../../support/run-operations.ts';
import { keptWallets } from '../../support/signer/kept-wallets.ts';
import { keyOf, openLogins } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// Wallets whose keys are sealed without an authority get one with their first owner.

const [owner, clerk] = [keyOf(newOwner()), keyOf(newOwner())];
const toOwner = { owner: { public_key: owner.publicKey } };

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  let wallets: ReturnType<typeof keptWallets>;
  beforeAll(async () => {
    server = await openLogins(kind, true);
    wallets = keptWallets(server);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const newWallet = (body: object = {}) => wallets.made('createWallet', { chain_type: 'ethereum', ...body });

  /** As an earlier version has stored it. */
  async function oldWallet(): Promise<string> {
    const walletId = await newWallet();
    await wallets.write('wallets', ['id', walletId], { owner_id: await wallets.quorumOf(owner) });
    return walletId;
  }

  async function authorityOf(walletId: string) {
    const { authority } = await wallets.rowOf('wallet_keys', ['wallet_id', walletId]);
    return authority === null ? null : (JSON.parse(String(authority)) as Record<string, unknown>);
  }

  test('a wallet is kept from its first owner on, however that is named', async () => {
    const ann = await wallets.made('createUser', { linked_accounts: [wallets.account(`ann-${kind}`)] });
    const owners = [
      [toOwner, async () => owner],
      [{ owner_id: await wallets.quorumOf(owner) }, async () => owner],
      [{ owner: { user_id: ann } }, () => wallets.keyFor(`ann-${kind}`)],
    ] as const;
    for (const [body, keyOfOwner] of owners) {
      const walletId = await newWallet();
      expect(await wallets.signs(walletId)).toBe(200);
      await wallets.change(walletId, body);
      const by = await keyOfOwner();
      await wallets.expectKept(walletId, by);
      await wallets.change(walletId, { owner: { public_key: clerk.publicKey } }, by);
      await wallets.expectKept(walletId, clerk);
    }
  });

  test('signers and policies from before the first owner are kept with it', async () => {
    const signerId = await wallets.quorumOf(clerk);
    const policyId = await wallets.made('createPolicy', { ...messagePolicy(['hello']), ...toOwner });
    const additional_signers = [{ signer_id: signerId, override_policy_ids: [policyId] }];
    const walletId = await newWallet({ additional_signers });
    await wallets.change(walletId, toOwner);
    expect(await wallets.signs(walletId, clerk)).toBe(200);
    await wallets.expectKept(walletId, owner);
    const anything = [{ id: 'x', name: 'any', method: '*', action: 'ALLOW', conditions: [] }];
    const loosened = { rules: JSON.stringify(anything), rules_digest: `loose ${kind}` };
    await wallets.write('policies', ['id', policyId], loosened);
    const body = { method: 'personal_sign', params: { message: 'robbery', encoding: 'utf-8' } };
    const robbery = wallets.run('walletRpc', { path: { wallet_id: walletId }, body }, clerk);
    await expect(robbery).rejects.toThrow('does not allow');
  });

  test('a wallet with an owner from before authorities is kept when the owner changes it', async () => {
    const changes = [
      { owner_id: await wallets.quorumOf(owner) },
      toOwner,
      { additional_signers: [] },
      { policy_ids: [] },
    ];
    for (const body of changes) {
      const walletId = await oldWallet();
      expect(await wallets.signs(walletId, owner)).toBe(200);
      const unsigned = await wallets.run('updateWallet', { path: { wallet_id: walletId }, body });
      expect([unsigned.status, await authorityOf(walletId)]).toEqual([401, null]);
      await wallets.change(walletId, body, owner);
      await wallets.expectKept(walletId, owner);
    }
  });

  test('the owner of such a wallet who attaches automations lets it be kept for them as well', async () => {
    const action = { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } };
    const config = { trigger: { type: 'deposit', assets: { mode: 'all' } }, action };
    const automation = await wallets.made('createWalletAutomation', { owner_id: null, config });
    const walletId = await oldWallet();
    const attach = { path: { wallet_id: walletId }, body: { automation_ids: [automation] } };
    await wallets.done('attachWalletAutomations', attach, owner);
    expect(await authorityOf(walletId)).toMatchObject({ isAutomated: true });
    await wallets.expectKept(walletId, owner);
    await wallets.change(walletId, { owner: { public_key: clerk.publicKey } }, owner);
    expect(await authorityOf(walletId)).toMatchObject({ isAutomated: false });

    const free = await newWallet();
    await wallets.done('attachWalletAutomations', { ...attach, path: { wallet_id: free } });
    expect(await authorityOf(free)).toBeNull();
    await wallets.change(free, toOwner);
    expect(await authorityOf(free)).toMatchObject({ isAutomated: false });
  });

  test('nothing is sealed for a wallet without an owner, or under users whose keys the server names', async () => {
    const email = { type: 'email', address: `bob-${kind}@example.com` };
    const bob = await wallets.made('createUser', { linked_accounts: [email] });
    const walletId = await newWallet();
    for (const body of [{ additional_signers: [] }, { owner: null }, { owner: { user_id: bob } }]) {
      await wallets.change(walletId, body);
      expect(await authorityOf(walletId)).toBeNull();
    }
  });

  test('the rows from before the first owner, as in a backup, make it a wallet without an owner again', async () => {
    const walletId = await newWallet();
    const before = await wallets.rowOf('wallet_keys', ['wallet_id', walletId]);
    await wallets.change(walletId, toOwner);
    await wallets.write('wallet_keys', ['wallet_id', walletId], before);
    await wallets.write('wallets', ['id', walletId], { owner_id: null });
    expect(await wallets.signs(walletId)).toBe(200);
  });
});
