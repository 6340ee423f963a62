import type { Hex } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addEarnVault } from '../../../src/admin/earn-vaults.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { type EarnContracts, earnContractsOn } from '../../support/nodes/earn-contracts.ts';
import {
  betweenBroadcasts,
  type Home,
  homes,
  type Server,
  type Step,
  stepsOfOne,
  whileEffectsAreRead,
} from '../../support/nodes/killable-servers.ts';
import { answerAbout, type MerklService, startMerkl, treeOf } from '../../support/nodes/merkl-service.ts';
import { startTreacherousNode, type TreacherousNode } from '../../support/treacherous-node.ts';

// The process is killed at a given step of an earn action on a real node, and another one continues.
const usdc: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const caip2 = 'eip155:8453';
/** An account that anvil signs for. */
const deployer = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const isLong = process.env.TEST_LONG === '1';

const actions = ['deposit', 'withdraw', 'claim', 'collect'] as const;
type Action = (typeof actions)[number];

const paths: Readonly<Record<Action, string>> = {
  deposit: 'deposit',
  withdraw: 'withdraw',
  claim: 'incentive/claim',
  collect: 'fees/collect',
};

const stepsOfTwo: readonly Step[] = [
  { name: 'before it is simulated', method: 'eth_simulateV1', hasArrived: true, isKept: false },
  ...stepsOfOne.slice(1, 3),
  betweenBroadcasts,
  { ...betweenBroadcasts, name: 'after the second broadcast, before its answer', hasArrived: true },
  ...stepsOfOne.slice(3),
  whileEffectsAreRead,
];

/** With `TEST_LONG=1` every step of every action, otherwise one of those at which most can go wrong. */
const kills: readonly (Step & { readonly action: Action })[] = isLong
  ? actions.flatMap((action) =>
      (action === 'deposit' ? stepsOfTwo : [...stepsOfOne, whileEffectsAreRead]).map((step) => ({
        ...step,
        action,
      })),
    )
  : [{ ...betweenBroadcasts, action: 'deposit' }];
const kinds = isLong ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const);

describe.each(kinds)('on %s, with a server that is killed', (kind) => {
  let anvil: Anvil;
  let node: TreacherousNode;
  let merkl: MerklService;
  let home: Home;
  let server: Server;
  let contracts: EarnContracts;
  let distributor: Hex;
  let rewardToken: Hex;
  let wallet: Wallet & { address: Hex };
  let vaultAddress: Hex;
  let vaultId: string;
  /** What a wallet was given in all. */
  let given: { user: string; token: string; amount: bigint }[];

  beforeEach(async () => {
    given = [];
    anvil = await startAnvil(8453);
    node = await startTreacherousNode(anvil.url);
    contracts = earnContractsOn(anvil);
    distributor = await contracts.deploy('Distributor');
    rewardToken = await contracts.deploy('Token', 18);
    await contracts.installToken(usdc, 6);
    merkl = await startMerkl((path) => ({
      text: JSON.stringify(answerAbout(path.split('/')[3]!, 8453, given)),
    }));
    home = await homes[kind](node.url, { rewards: { distributor, merklUrl: merkl.url } });
    server = await home.start();
    await setUp();
  });
  afterEach(async () => {
    await server.kill();
    await merkl[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    await anvil[Symbol.asyncDispose]();
  });

  /** A wallet with 60 USDC, and 40 more in a vault that has kept 3 as fees, and with a reward. */
  async function setUp(): Promise<void> {
    const { body } = await server.call<Wallet>('POST', '/v1/wallets', { chain_type: 'ethereum' });
    wallet = body as typeof wallet;
    await anvil.ask('anvil_setBalance', wallet.address, `0x${(10n ** 18n).toString(16)}`);
    vaultAddress = await contracts.deploy('FeeVault', usdc, wallet.address);
    await contracts.call(usdc, 'Token', 'mint', wallet.address, 60_000_000n);
    ({ id: vaultId } = await addEarnVault(
      home.database,
      { rpc: [{ caip2, urls: [anvil.url] }] },
      {
        ...{ appId: server.appId, chain: 'base', address: vaultAddress, provider: 'aave' },
        ...{ adminWalletId: wallet.id, feeBps: 1000 },
      },
    ));
    // By another account, so that the server has no transactions to follow yet.
    await contracts.call(usdc, 'Token', 'mint', deployer, 40_000_000n);
    await contracts.call(usdc, 'Token', 'approve', vaultAddress, 40_000_000n);
    await contracts.call(vaultAddress, 'Vault', 'deposit', 40_000_000n, wallet.address);
    await contracts.call(usdc, 'Token', 'mint', vaultAddress, 3_000_000n);
    await contracts.call(vaultAddress, 'FeeVault', 'keepFees', 3_000_000n);
    given = [{ user: wallet.address, token: rewardToken, amount: 5n * 10n ** 17n }];
    await contracts.call(rewardToken, 'Token', 'mint', distributor, 10n ** 18n);
    await contracts.call(distributor, 'Distributor', 'setRoot', treeOf(given).root);
  }

  const start = (action: Action) =>
    server.call<{ id: string }>('POST', `/v1/wallets/${wallet.id}/earn/ethereum/${paths[action]}`, {
      ...(action === 'claim' ? { chain: 'base' } : { vault_id: vaultId }),
      ...(action === 'deposit' || action === 'withdraw' ? { raw_amount: '7000000' } : {}),
      nonce: 'this-action-only-once-2026',
    });
  const actionsNow = async () =>
    (await server.call<{ data: { status: string }[] }>('GET', `/v1/wallets/${wallet.id}/actions`)).body.data;

  /** Mines and follows blocks until the wallet's actions have ended. */
  async function settle() {
    for (let round = 0; round < 100; round += 1) {
      await anvil.ask('evm_mine');
      await home.letTimePass(server).catch(() => undefined);
      const now = await actionsNow();
      if (now.every(({ status }) => status !== 'pending')) return now;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('the actions do not end');
  }

  /** Mines and follows blocks until then. */
  async function mineUntil(then: Promise<void>): Promise<void> {
    let isOver = false;
    void then.then(() => {
      isOver = true;
    });
    while (!isOver) {
      await anvil.ask('evm_mine');
      await home.letTimePass(server).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  const holdings = async () => ({
    usdc: await contracts.read(usdc, 'Token', 'balanceOf', wallet.address),
    shares: await contracts.read(vaultAddress, 'Vault', 'balanceOf', wallet.address),
    rewards: await contracts.read(rewardToken, 'Token', 'balanceOf', wallet.address),
    sent: BigInt((await anvil.ask('eth_getTransactionCount', wallet.address, 'pending')) as string),
  });
  const before = { usdc: 60_000_000n, shares: 40_000_000n, rewards: 0n, sent: 0n };
  const after: Readonly<Record<Action, typeof before>> = {
    deposit: { ...before, usdc: 53_000_000n, shares: 47_000_000n, sent: 2n },
    withdraw: { ...before, usdc: 67_000_000n, shares: 33_000_000n, sent: 1n },
    claim: { ...before, rewards: 5n * 10n ** 17n, sent: 1n },
    collect: { ...before, usdc: 63_000_000n, sent: 1n },
  };

  test.each(kills)(
    '$action killed $name moves the money once',
    async ({ action, isKept, name: _, ...trap }) => {
      expect(await holdings()).toEqual(before);
      const { promise: isDead, resolve: onDeath } = Promise.withResolvers<void>();
      node.set(trap, async () => {
        await server.kill();
        onDeath();
      });
      // The response is lost with the server, except when the server is killed after sending it.
      const lost = start(action).catch(() => undefined);
      await (isKept ? mineUntil(isDead) : isDead);
      await lost;

      server = await home.start();
      // Callers without a response send the same request again.
      expect((await start(action)).status).toBe(isKept ? 409 : 200);
      expect((await settle()).map(({ status }) => status)).toEqual(['succeeded']);
      expect(await holdings()).toEqual(after[action]);
    },
    120_000,
  );
});
