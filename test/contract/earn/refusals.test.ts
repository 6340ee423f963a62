import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import type { AnyChain } from '../../../src/ports/chains.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { transfersIn } from '../wallets/transfers-in.ts';
import { earnIn, type SetUpVault } from './earn-in.ts';

const base = 'eip155:8453';
const token = '0x6f470988d35CD75390B4CA8Aee1a922f1BDbE9E7';
const executionFailed = { status: 400, code: 'transaction_execution_failure' };
const poor = { status: 400, code: 'insufficient_funds' };
const used = { status: 409, code: 'resource_conflict', error: '/nonce: the wallet has seen this nonce' };

let sandbox: TestSandbox;
let wallet: Wallet;
let vault: SetUpVault;
beforeAll(async () => {
  sandbox = await startSandbox();
  wallet = await makeWallet(10_000_000n);
  vault = await setUpVault({ provider: 'aave', admin_wallet_id: wallet.id, apy_bps: 10_000, fee_bps: 5000 });
  await start('depositEthereumEarn', wallet.id, { vault_id: vault.id, amount: '4' });
  await wait(31_536_000);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const { makeWallet, wait } = transfersIn(() => sandbox);
const { start, setUpVault, changeVault, refused } = earnIn(() => sandbox);

const reward = (address: string) =>
  sandbox.chains.earn.addReward(base, {
    ...{ address, tokenAddress: token, rawAmount: 5n, decimals: 18, symbol: 'RWD' },
  });

/** Runs `work` while a service of the server is another one. */
async function having(services: Partial<TestSandbox['services']>, work: () => Promise<void>): Promise<void> {
  const before = Object.fromEntries(
    Object.keys(services).map((name) => [name, sandbox.services[name as keyof typeof services]]),
  );
  Object.assign(sandbox.services, services);
  try {
    await work();
  } finally {
    Object.assign(sandbox.services, before);
  }
}

test('a vault that is paused after it was asked, and before the simulation, refuses what was planned', async () => {
  const pausing = (chain: AnyChain | undefined) =>
    chain?.kind !== 'evm'
      ? chain
      : {
          ...chain,
          async simulateSequence(calls: Parameters<typeof chain.simulateSequence>[0]) {
            await sandbox.chains.earn.changeVault(base, vault.address, { isPaused: true });
            return chain.simulateSequence(calls);
          },
        };
  const { chains } = sandbox.services;
  await having({ chains: { ...chains, find: (caip2) => pausing(chains.find(caip2)) } }, async () => {
    for (const operation of ['depositEthereumEarn', 'withdrawEthereumEarn'] as const) {
      await changeVault(vault, { paused: false });
      const answer = await refused(operation, wallet.id, { vault_id: vault.id, amount: '1' });
      expect(answer).toMatchObject(executionFailed);
      expect(answer.error).toMatch(/ERC4626ExceededMax(Deposit|Withdraw)/);
    }
  });
  await changeVault(vault, { paused: false });
});

test('fees that the vault has lent cannot be collected', async () => {
  await changeVault(vault, { raw_liquidity: '0' });
  const answer = await refused('collectEthereumEarnFees', wallet.id, { vault_id: vault.id });
  expect(answer).toMatchObject(executionFailed);
  await changeVault(vault, { raw_liquidity: '5000000' });
});

test('a reward whose proof is outdated cannot be claimed, and an unreachable program pays none', async () => {
  await reward(wallet.address);
  const { incentives } = sandbox.services;
  const outdated = await incentives?.rewards(base, wallet.address);
  await reward('0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0');
  await having({ incentives: { rewards: async () => outdated } }, async () => {
    const answer = await refused('claimEthereumEarnIncentive', wallet.id, { chain: 'base' });
    expect(answer).toMatchObject({ ...executionFailed, error: expect.stringContaining('InvalidProof') });
  });
  const down = () => Promise.reject(new Error('connect ECONNREFUSED'));
  await having({ incentives: { rewards: down } }, async () => {
    const answer = await refused('claimEthereumEarnIncentive', wallet.id, { chain: 'base' });
    expect(answer).toMatchObject({ status: 400, code: 'transaction_broadcast_failure' });
  });
});

test('a wallet that cannot pay the gas claims and collects nothing', async () => {
  const { body: gasless } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await reward(gasless.address);
  expect(await refused('claimEthereumEarnIncentive', gasless.id, { chain: 'base' })).toMatchObject(poor);
  const own = await setUpVault({ provider: 'aave', admin_wallet_id: gasless.id, apy_bps: 5000 });
  await start('depositEthereumEarn', wallet.id, { vault_id: own.id, amount: '1' });
  await wait(1_000_000);
  const body = { vault_id: own.id };
  expect(await refused('collectEthereumEarnFees', gasless.id, body)).toMatchObject(poor);
});

test('fees are collected under a policy only by a rule for every method', async () => {
  const rule = {
    ...{ name: 'Deposits', method: 'earn_deposit', action: 'ALLOW' },
    conditions: [{ field_source: 'action_request_body', field: 'vault_id', operator: 'eq', value: vault.id }],
  };
  const policyOf = async (...rules: object[]) => {
    const body = { version: '1.0', name: 'Fees', chain_type: 'ethereum', rules: rules as never } as const;
    return [(await call(sandbox, 'createPolicy', { body })).body.id];
  };
  const admin = await makeWallet(0n, { policy_ids: await policyOf(rule) });
  const own = await setUpVault({ provider: 'aave', admin_wallet_id: admin.id, apy_bps: 5000 });
  await start('depositEthereumEarn', wallet.id, { vault_id: own.id, amount: '1' });
  await wait(1_000_000);
  const collect = { vault_id: own.id };
  expect(await refused('collectEthereumEarnFees', admin.id, collect)).toMatchObject({
    ...{ status: 400, code: 'policy_violation' },
  });
  const every = { ...rule, method: '*', conditions: [{ ...rule.conditions[0], value: own.id }] };
  await call(sandbox, 'updateWallet', {
    path: { wallet_id: admin.id },
    body: { policy_ids: await policyOf(every) },
  });
  expect((await start('collectEthereumEarnFees', admin.id, collect)).status).toBe('pending');
});

test('each of the actions takes a nonce once', async () => {
  await reward(wallet.address);
  const actions = [
    ['withdrawEthereumEarn', { vault_id: vault.id, amount: '0.5' }],
    ['claimEthereumEarnIncentive', { chain: 'base' }],
    ['collectEthereumEarnFees', { vault_id: vault.id }],
  ] as const;
  for (const [operation, body] of actions) {
    const once = { ...body, nonce: `${operation}-2026-01-01` };
    expect((await start(operation, wallet.id, once)).status).toBe('pending');
    expect(await refused(operation, wallet.id, once)).toEqual(used);
  }
});

test('a vault on a chain that is no longer configured cannot be read', async () => {
  const { chains } = sandbox.services;
  const without = { ...chains, find: (caip2: string) => (caip2 === base ? undefined : chains.find(caip2)) };
  await having({ chains: without }, async () => {
    const unsupported = { status: 400, body: { code: 'not_supported' } };
    const query = { vault_id: vault.id };
    expect(await refusal(sandbox, 'getEthereumEarnVault', { path: query })).toMatchObject(unsupported);
    const position = { path: { wallet_id: wallet.id }, query };
    expect(await refusal(sandbox, 'getEthereumEarnPosition', position)).toMatchObject(unsupported);
  });
});
