import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse, TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { signIntent } from '../../support/intents.ts';
import {
  betweenBroadcasts,
  type Home,
  homes,
  type Server,
  type Step,
  stepsOfOne as steps,
  whileEffectsAreRead,
} from '../../support/nodes/killable-servers.ts';
import { deployUniswap, ROUTER_ON_ANVIL } from '../../support/nodes/uniswap.ts';
import { startTreacherousNode, type TreacherousNode } from '../../support/treacherous-node.ts';

// The process is killed at a given step of a transfer on a real node, and another one continues.
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const ether = 10n ** 18n;

const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const isLong = process.env.TEST_LONG === '1';

/** With `TEST_LONG=1` every step on both databases, otherwise those at which most can go wrong, one on each. */
const stepsOfTransfers = (kind: 'sqlite' | 'postgres') =>
  isLong ? steps : [kind === 'sqlite' ? steps.at(-1)! : steps[1]!];

/** The steps of a swap: an approval and the call of the router. */
const stepsOfSwaps: readonly Step[] = isLong
  ? [
      { name: 'before it is simulated', method: 'eth_simulateV1', hasArrived: true, isKept: false },
      ...steps.slice(1, 3),
      betweenBroadcasts,
      { ...betweenBroadcasts, name: 'after the second broadcast, before its answer', hasArrived: true },
      ...steps.slice(3),
      whileEffectsAreRead,
    ]
  : [betweenBroadcasts];

describe.each(['sqlite', 'postgres'] as const)('a transfer on %s whose server is killed', (kind) => {
  let anvil: Anvil;
  let node: TreacherousNode;
  let home: Home;
  let server: Server;
  beforeEach(async () => {
    anvil = await startAnvil(8453);
    node = await startTreacherousNode(anvil.url);
    home = await homes[kind](node.url, { swapRouter: ROUTER_ON_ANVIL });
    server = await home.start();
  });
  afterEach(async () => {
    await server.kill();
    await node[Symbol.asyncDispose]();
    await anvil[Symbol.asyncDispose]();
  });

  const nonceOf = (reference: string) => `${reference}-of-the-treasury-2026`;
  const send = (wallet: Wallet, reference: string) =>
    server.call<TransferActionResponse>('POST', `/v1/wallets/${wallet.id}/transfer`, {
      source: { asset: 'eth', chain: 'base', amount: '0.25' },
      destination: { address: receiver },
      nonce: nonceOf(reference),
      reference_id: reference,
    });
  const actionsOf = async (wallet: Wallet) =>
    (await server.call<{ data: TransferActionResponse[] }>('GET', `/v1/wallets/${wallet.id}/actions`)).body
      .data;

  /** Mines and follows blocks until the wallet's actions have ended. */
  async function settle(wallet: Wallet): Promise<TransferActionResponse[]> {
    for (let round = 0; round < 100; round += 1) {
      await anvil.ask('evm_mine');
      await home.letTimePass(server);
      const actions = await actionsOf(wallet);
      if (actions.every(({ status }) => status !== 'pending')) return actions;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('the actions do not end');
  }

  test.runIf(isLong || kind === 'sqlite')(
    'started by an intent, it is broadcast once and settles the intent',
    async () => {
      const { body: wallet } = await server.call<Wallet>('POST', '/v1/wallets', {
        chain_type: 'ethereum',
        owner: { public_key: aliceKey.publicKey },
      });
      await anvil.ask('anvil_setBalance', wallet.address, `0x${ether.toString(16)}`);
      const { body: intent } = await server.call<IntentResponse>(
        'POST',
        `/v1/intents/wallets/${wallet.id}/transfer`,
        { source: { asset: 'eth', chain: 'base', amount: '0.25' }, destination: { address: receiver } },
      );
      const intentNow = async () =>
        (await server.call<IntentResponse>('GET', `/v1/intents/${intent.intent_id}`)).body;
      const authorize = () =>
        server.call<{ code: string }>('POST', `/v1/intents/${intent.intent_id}/authorize`, {
          signature: signIntent({ prefix: 'service', appId: server.appId }, intent, aliceKey.privateKey),
          timestamp: intent.created_at,
        });
      const { promise: isDead, resolve: onDeath } = Promise.withResolvers<void>();
      node.set({ method: 'eth_sendRawTransaction', hasArrived: false }, async () => {
        await server.kill();
        onDeath();
      });
      const lost = authorize().catch(() => undefined);
      await isDead;
      await lost;

      server = await home.start();
      expect((await intentNow()).status).toBe('processing');
      // Callers without a response sign again.
      expect(await authorize()).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
      const [action] = await settle(wallet);
      expect(await intentNow()).toMatchObject({
        status: 'executed',
        action_result: { status_code: 200, response_body: action },
      });
      expect(action?.status).toBe('succeeded');
      expect(await anvil.ask('eth_getBalance', receiver, 'latest')).toBe(`0x${(ether / 4n).toString(16)}`);
    },
    120_000,
  );

  test.runIf(isLong || kind === 'postgres').each(stepsOfSwaps)(
    'a swap killed $name swaps once',
    async ({ isKept, name: _, ...trap }) => {
      const uniswap = await deployUniswap(anvil);
      await uniswap.installToken(usdc);
      await uniswap.makePool([usdc, 10n ** 12n], ['native', 300n * ether]);
      const { body: wallet } = await server.call<Wallet>('POST', '/v1/wallets', { chain_type: 'ethereum' });
      await anvil.ask('anvil_setBalance', wallet.address, `0x${ether.toString(16)}`);
      await uniswap.giveToken(usdc, wallet.address, 1_000_000_000n);
      const swap = () =>
        server.call<{ id: string }>('POST', `/v1/wallets/${wallet.id}/swap`, {
          source: { asset_address: usdc, caip2: 'eip155:8453' },
          destination: { asset_address: 'native', destination_address: receiver },
          base_amount: '600000000',
          nonce: nonceOf('swapped-once'),
        });
      const { promise: isDead, resolve: onDeath } = Promise.withResolvers<void>();
      node.set(trap, async () => {
        await server.kill();
        onDeath();
      });
      const lost = swap().catch(() => undefined);
      const mined = isKept ? mineUntil(isDead) : isDead;
      await mined;
      await lost;

      server = await home.start();
      const again = await swap();
      expect(again.status).toBe(isKept ? 409 : 200);
      const [action, ...others] = (await settle(wallet)) as unknown as {
        status: string;
        input_amount: string;
        output_amount: string;
      }[];
      expect(others).toEqual([]);
      expect(action).toMatchObject({ status: 'succeeded', input_amount: '600000000' });
      expect(BigInt((await anvil.ask('eth_getBalance', receiver, 'latest')) as string)).toBe(
        BigInt(action!.output_amount),
      );
      expect(await anvil.ask('eth_getTransactionCount', wallet.address, 'pending')).toBe('0x2');
    },
    120_000,
  );

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

  test.each(stepsOfTransfers(kind))(
    '$name moves the funds once',
    async ({ isKept, name: _, ...trap }) => {
      const { body: wallet } = await server.call<Wallet>('POST', '/v1/wallets', { chain_type: 'ethereum' });
      await anvil.ask('anvil_setBalance', wallet.address, `0x${ether.toString(16)}`);
      const { promise: isDead, resolve: onDeath } = Promise.withResolvers<void>();
      node.set(trap, async () => {
        await server.kill();
        onDeath();
      });
      // The response is lost with the server, except when the server is killed after sending it.
      const lost = send(wallet, 'paid-once').catch(() => undefined);
      await isDead;
      await lost;

      server = await home.start();
      const left = await actionsOf(wallet);
      expect(left.map(({ status }) => status)).toEqual(isKept ? ['pending'] : []);
      // Callers without a response send the same request again.
      const again = await send(wallet, 'paid-once');
      expect(again.status).toBe(isKept ? 409 : 200);
      // The next transfer uses the next nonce of the chain and does not wait.
      expect((await send(wallet, 'paid-after')).status).toBe(200);
      const ended = await settle(wallet);
      expect(ended.map(({ status, reference_id }) => [reference_id, status]).sort()).toEqual([
        ['paid-after', 'succeeded'],
        ['paid-once', 'succeeded'],
      ]);
      expect(await anvil.ask('eth_getBalance', receiver, 'latest')).toBe(`0x${(ether / 2n).toString(16)}`);
      expect(await anvil.ask('eth_getTransactionCount', wallet.address, 'pending')).toBe('0x2');
    },
    120_000,
  );
});
