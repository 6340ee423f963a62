import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { parseUnits } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { getAppGasSpend } from '../../../src/domain/money/gas-spend/gas-spend.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { AnyChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { isLong } from '../../figures/figure.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { finish, follow, runJobs } from './run-jobs.ts';

const networks = [
  {
    name: 'base',
    chainType: 'ethereum',
    caip2: 'eip155:8453',
    native: ['eth', 18],
    stable: ['usdc', 6],
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  },
  {
    name: 'arbitrum',
    chainType: 'ethereum',
    caip2: 'eip155:42161',
    native: ['eth', 18],
    stable: ['usdc', 6],
    token: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
  },
  {
    name: 'solana',
    chainType: 'solana',
    caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    native: ['sol', 9],
    stable: ['usdc', 6],
    token: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  },
  {
    name: 'tron',
    chainType: 'tron',
    caip2: 'tron:0x2b6653dc',
    native: ['trx', 6],
    stable: ['usdt', 6],
    token: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  },
] as const;
const base = networks[0].caip2;
const usdcOnBase = networks[0].token;
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const nonce = 'a-nonce-of-the-caller-000001';
const second = 1000;
const ether = 10n ** 18n;

/** The real chain, except that broadcasts may be lost. */
interface Weather {
  /** Drops the connection before or after the chain has the bytes, or crashes the server at that point. */
  loses: 'nothing' | 'requests' | 'answers' | 'the server before' | 'the server after';
  /** Called when the server goes down. */
  onCrash(): void;
}

describe.each(databaseKinds)('transfers on %s', (kind) => {
  let operations: TestOperations;
  let chains: SimulatedChains;
  let weather: Weather;
  const clock = { nowMs: 0 };

  beforeEach(async () => {
    chains = openSimulatedChains({
      file: ':memory:',
      clock: { now: () => clock.nowMs },
      confirmAfterMs: undefined,
    });
    weather = { loses: 'nothing', onCrash: () => undefined };
    operations = await openOperations(kind, {
      chains: { find: (caip2) => inWeather(chains.find(caip2), weather) },
    });
    clock.nowMs = operations.clock.nowMs;
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await chains.close();
  });

  /** Advances the clock, mines the due blocks and runs the due jobs. */
  async function wait(seconds: number, served = operations): Promise<void> {
    const step = seconds > 3600 ? 600 : 30;
    for (let passed = 0; passed < seconds; passed += step) {
      clock.nowMs += Math.min(step, seconds - passed) * second;
      operations.clock.nowMs = clock.nowMs;
      await runJobs(served);
    }
  }

  /** A wallet with 1 ETH or 1000 of another native asset, and 10 of a stablecoin. */
  async function makeWallet(name: (typeof networks)[number]['name'] = 'base'): Promise<Wallet> {
    const { chainType, caip2, native, token } = networks.find((network) => network.name === name)!;
    const { body } = await operations.run('createWallet', { body: { chain_type: chainType } });
    const wallet = body as Wallet;
    const { address } = wallet;
    const gas = parseUnits(native[0] === 'eth' ? '1' : '1000', native[1]);
    await chains.fund(caip2, { address, tokenAddress: null, rawAmount: gas });
    await chains.fund(caip2, { address, tokenAddress: token, rawAmount: 10_000_000n, decimals: 6 });
    return wallet;
  }

  /** Sends, or goes down with the server. */
  async function sendInWeather(loses: Weather['loses'], ...order: Parameters<typeof send>): Promise<string> {
    const crash = Promise.withResolvers<string>();
    weather.loses = loses;
    weather.onCrash = () => {
      // Later calls succeed.
      weather.loses = 'nothing';
      crash.resolve('crashed');
    };
    const outcome = send(...order).then(({ status, body }) =>
      status === 200 ? 'begun' : (body as { code: string }).code,
    );
    const reported = await Promise.race([outcome, crash.promise]);
    // It goes down while it sends or not at all.
    if (loses.startsWith('the server')) weather.loses = 'nothing';
    return reported;
  }

  const send = (wallet: Wallet, amount: string, extra: object = {}, served = operations) =>
    served.run('transferFromWallet', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount },
        destination: { address: receiver },
        ...extra,
      },
    });
  const statusOf = async (answer: { body: unknown }) => {
    const { id, wallet_id } = answer.body as TransferActionResponse;
    const { body } = await operations.run('getWalletAction', { path: { wallet_id, action_id: id } });
    return (body as TransferActionResponse).status;
  };
  const received = async () => (await chains.find(base)!.balances(receiver, [usdcOnBase]))[0];
  const eventTypes = async () => {
    const em = operations.database.orm.em.fork() as SqlEntityManager;
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select('type')
      .where('type', 'like', 'wallet_action%')
      .orderBy('sequence')
      .execute();
    return rows.map(({ type }) => type.replace('wallet_action.transfer.', ''));
  };

  test('of concurrent requests with one nonce exactly one moves funds', async () => {
    const wallet = await makeWallet();
    // On PostgreSQL another process serves half of them.
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        send(wallet, '1', { nonce }, index % 2 === 0 ? operations : other),
      ),
    );
    if (other !== operations) await other[Symbol.asyncDispose]();
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
    await wait(60);
    expect(await received()).toBe(1_000_000n);
    expect(await eventTypes()).toEqual(['created', 'succeeded']);
  });

  test('concurrent transfers use different chain nonces, and all arrive', async () => {
    const wallet = await makeWallet();
    const answers = await Promise.all(['1', '2', '3'].map((amount) => send(wallet, amount)));
    await wait(60);
    expect(await Promise.all(answers.map(statusOf))).toEqual(['succeeded', 'succeeded', 'succeeded']);
    expect(await received()).toBe(6_000_000n);
  });

  test.each(['requests', 'answers'] as const)(
    'when %s are lost, the same bytes are broadcast until the chain has them, once',
    async (loses) => {
      const wallet = await makeWallet();
      weather.loses = loses;
      const answer = await send(wallet, '1', { nonce });
      expect(answer.status).toBe(200);
      await wait(60);
      expect((await send(wallet, '1', { nonce })).status).toBe(409);
      weather.loses = 'nothing';
      await wait(300);
      expect(await statusOf(answer)).toBe('succeeded');
      expect(await received()).toBe(1_000_000n);
      expect(await eventTypes()).toEqual(['created', 'succeeded']);
    },
  );

  test('chain unreachable before signing: the request is refused and the nonce stays free', async () => {
    const wallet = await makeWallet();
    const original = chains.find;
    const lost = { ...operations.services, chains: { find: (id: string) => unreachable(original(id)) } };
    Object.assign(operations.services, { chains: lost.chains });
    expect(await send(wallet, '1', { nonce })).toMatchObject({
      status: 400,
      body: { code: 'transaction_broadcast_failure' },
    });
    Object.assign(operations.services, { chains });
    expect((await send(wallet, '1', { nonce })).status).toBe(200);
  });

  test('a transfer that would revert is refused, and its nonce stays free', async () => {
    const wallet = await makeWallet();
    const message = 'Blacklistable: account is blacklisted';
    const reverts = { succeeds: false, index: 0, reason: 'reverts', message } as const;
    const reverting = (chain: AnyChain | undefined) => chain && { ...chain, simulate: async () => reverts };
    const find = (id: string) => reverting(chains.find(id)) as AnyChain | undefined;
    Object.assign(operations.services, { chains: { find } });
    expect(await send(wallet, '1', { nonce })).toEqual({
      status: 400,
      body: { error: `the transaction would revert: ${message}`, code: 'transaction_execution_failure' },
    });
    expect(await eventTypes()).toEqual([]);
    Object.assign(operations.services, { chains });
    expect((await send(wallet, '1', { nonce })).status).toBe(200);
  });

  test('a transfer that the chain refuses on broadcast is rejected, and can be retried', async () => {
    const wallet = await makeWallet();
    // Each is affordable on its own, but not both together.
    const eth = { source: { asset: 'eth', chain: 'base', amount: '0.9' } };
    const answers = await Promise.all([send(wallet, '', eth), send(wallet, '', eth)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await wait(60);
    const ends = await Promise.all(answers.map(statusOf));
    expect(ends.filter((status) => status === 'succeeded')).toHaveLength(1);
    await wait(25 * 60 * 60);
    expect((await Promise.all(answers.map(statusOf))).sort()).toEqual(['rejected', 'succeeded']);
    expect((await eventTypes()).sort()).toEqual(['created', 'created', 'rejected', 'succeeded']);
    const [balance] = await chains.find(base)!.balances(receiver, [null]);
    expect(balance).toBe((9n * ether) / 10n);
  });

  test('several processes that settle actions record each event once', async () => {
    const wallet = await makeWallet();
    for (const amount of ['0.1', '0.2', '0.3', '0.4']) await send(wallet, amount);
    clock.nowMs += 30 * second;
    operations.clock.nowMs = clock.nowMs;
    await follow(operations);
    await Promise.all(Array.from({ length: 4 }, () => finish(operations)));
    expect((await eventTypes()).filter((type) => type === 'succeeded')).toHaveLength(4);
  });

  test('the gas of sponsored transactions is summed at current prices', async () => {
    const wallet = await makeWallet();
    await send(wallet, '1');
    await wait(60);
    const em = operations.database.orm.em.fork() as SqlEntityManager;
    // As if the app had paid for it.
    await em
      .getKysely<Tables>()
      .updateTable('transactions')
      .set({ is_sponsored: 1, fee_paid: '4200000000000000' })
      .execute();
    const context = { ...operations.context(em), prices: fixedPrices };
    const spend = (startMs: number, endMs: number, ids = [wallet.id]) =>
      getAppGasSpend(context, { wallet_ids: ids, start_timestamp: startMs, end_timestamp: endMs });
    const madeMs = clock.nowMs - 60 * second;
    // 0.0042 ETH at 3000 US dollars.
    expect(await spend(madeMs, madeMs + 1)).toEqual({ value: '12.6', currency: 'usd' });
    expect(await spend(madeMs - 1, madeMs)).toEqual({ value: '0', currency: 'usd' });
    expect(await spend(madeMs, madeMs + 1, ['another'])).toEqual({ value: '0', currency: 'usd' });
  });

  test('funds are neither created nor lost, whatever is sent, whatever is lost and whenever the server crashes', async () => {
    const pairs: { network: (typeof networks)[number]; wallets: Wallet[] }[] = [];
    for (const network of networks) {
      pairs.push({ network, wallets: [await makeWallet(network.name), await makeWallet(network.name)] });
    }
    const totals = () =>
      Promise.all(
        networks.flatMap(({ caip2, token }) => [chains.total(caip2, null), chains.total(caip2, token)]),
      );
    const before = await totals();
    const move = fc.record({
      on: fc.integer({ min: 0, max: networks.length - 1 }),
      from: fc.integer({ min: 0, max: 1 }),
      isNative: fc.boolean(),
      raw: fc.bigInt({ min: 1n, max: 4_000_000n }),
      loses: fc.constantFrom(
        'nothing' as const,
        'requests' as const,
        'answers' as const,
        'the server before' as const,
        'the server after' as const,
      ),
      waits: fc.constantFrom(0, 1, 31),
    });
    const outcomes: string[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 1, maxLength: 8 }), async (moves) => {
        for (const { on, from, isNative, raw, loses, waits } of moves) {
          const { network, wallets } = pairs[on]!;
          const [asset, decimals] = isNative ? network.native : network.stable;
          const text = raw.toString().padStart(decimals + 1, '0');
          const amount = `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
          const outcome = await sendInWeather(loses, wallets[from]!, '', {
            source: { asset, chain: network.name, amount },
            destination: { address: wallets[1 - from]!.address },
          });
          outcomes.push(outcome);
          if (waits > 0) await wait(waits);
        }
        weather.loses = 'nothing';
        await wait(120);
        expect(await totals()).toEqual(before);
      }),
      { numRuns: isLong ? 10 : 4, seed: 7 },
    );
    expect(outcomes.filter((outcome) => outcome === 'begun').length).toBeGreaterThan(5);
    expect(outcomes.filter((outcome) => outcome === 'crashed').length).toBeGreaterThan(5);
    // Every action has ended, including those of crashed servers, and successes match the chain.
    await wait(25 * 60 * 60);
    const ended = await endedActions();
    expect(ended.filter(({ status }) => status === 'pending')).toEqual([]);
    expect(ended.length).toBe(
      outcomes.filter((outcome) => outcome === 'begun' || outcome === 'crashed').length,
    );
    for (const { network, wallets } of pairs) {
      const { caip2, token, stable } = network;
      const moved = ended.filter(
        ({ status, source_asset: asset }) => status === 'succeeded' && asset === stable[0],
      );
      const sumOf = (actions: typeof moved) =>
        actions.reduce((sum, { source_amount: amount }) => sum + parseUnits(amount, stable[1]), 0n);
      for (const wallet of wallets) {
        const sent = moved.filter(({ wallet_id: id }) => id === wallet.id);
        const received = moved.filter(({ destination_address: address }) => address === wallet.address);
        expect(sent.length + received.length).toBeGreaterThan(0);
        const [balance] = await chains.find(caip2)!.balances(wallet.address, [token]);
        expect(balance).toBe(10_000_000n + sumOf(received) - sumOf(sent));
      }
    }
    expect(await totals()).toEqual(before);
  });

  async function endedActions() {
    const em = operations.database.orm.em.fork() as SqlEntityManager;
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_actions')
      .select(['wallet_id', 'status', 'details'])
      .execute();
    return rows.map(({ details, ...row }) => ({
      ...row,
      ...(JSON.parse(details) as Record<'source_asset' | 'source_amount' | 'destination_address', string>),
    }));
  }
});

function inWeather(chain: AnyChain | undefined, weather: Weather): AnyChain | undefined {
  return (
    chain && {
      ...chain,
      async broadcast(bytes: Uint8Array) {
        const { loses } = weather;
        if (loses === 'requests') throw new Error('connection refused');
        if (loses === 'the server before') return goDown(weather);
        const outcome = await chain.broadcast(bytes);
        if (loses === 'answers') throw new Error('connection reset');
        return loses === 'the server after' ? goDown(weather) : outcome;
      },
    }
  );
}

function goDown(weather: Weather): Promise<never> {
  weather.onCrash();
  return new Promise(() => undefined);
}

function unreachable(chain: AnyChain | undefined): AnyChain | undefined {
  return chain && { ...chain, balances: () => Promise.reject(new Error('connection refused')) };
}
