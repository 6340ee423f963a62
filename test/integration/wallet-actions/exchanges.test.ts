import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { parseUnits } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type { TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { Exchange } from '../../../src/ports/exchange.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { isLong } from '../../figures/figure.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { askExchange, finish, follow, runJobs } from './run-jobs.ts';

const networks = [
  {
    name: 'base',
    chainType: 'ethereum',
    caip2: 'eip155:8453',
    solver: '0x00000000000000000000000000000000000501fe',
    native: ['eth', 18, '3000'],
    stable: ['usdc', 6, '1'],
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  },
  {
    name: 'solana',
    chainType: 'solana',
    caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    solver: 'So1ver1111111111111111111111111111111111111',
    native: ['sol', 9, '150'],
    stable: ['usdc', 6, '1'],
    token: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  },
  {
    name: 'tron',
    chainType: 'tron',
    caip2: 'tron:0x2b6653dc',
    solver: 'T9yD14Nj9j7xAB4dbGeiX9h8xpnf1MCC13',
    native: ['trx', 6, '0.25'],
    stable: ['usdt', 6, '1'],
    token: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  },
] as const;
type Network = (typeof networks)[number];
const [base, solana, tron] = networks;
const second = 1000;
/** How long the exchange's quotes hold. */
const quoteSeconds = 600;

/** The real exchange, except that responses may be lost. */
interface Weather {
  loses: 'nothing' | 'quotes' | 'answers';
}

describe.each(databaseKinds)('exchanges on %s', (kind) => {
  let operations: TestOperations;
  let folder: string;
  let chains: SimulatedChains;
  const weather: Weather = { loses: 'nothing' };
  const clock = { nowMs: 0 };

  const openChains = () =>
    openSimulatedChains({
      file: join(folder, 'chains.db'),
      clock: { now: () => clock.nowMs },
      confirmAfterMs: undefined,
    });
  /** A separate server on the current chains and their exchange. */
  function connect(served: TestOperations): void {
    const { ids } = served.services;
    const exchange = chains.exchange({ ids, prices: fixedPrices, supports: chains.has });
    Object.assign(served.services, { chains, exchange: inWeather(exchange, weather) });
  }

  beforeEach(async () => {
    weather.loses = 'nothing';
    folder = await mkdtemp(join(tmpdir(), 'exchange-'));
    chains = openChains();
    operations = await openOperations(kind, { chains });
    clock.nowMs = operations.clock.nowMs;
    connect(operations);
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await chains.close();
    await rm(folder, { recursive: true });
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

  /** A wallet with 3000 US dollars of the native asset and as many stablecoins. */
  async function makeWallet({ chainType, caip2, native, token }: Network = base): Promise<Wallet> {
    const { body } = await operations.run('createWallet', { body: { chain_type: chainType } });
    const wallet = body as Wallet;
    const { address } = wallet;
    const gas = parseUnits(String(3000 / Number(native[2])), native[1]);
    await chains.fund(caip2, { address, tokenAddress: null, rawAmount: gas });
    await chains.fund(caip2, { address, tokenAddress: token, rawAmount: 3_000_000_000n, decimals: 6 });
    return wallet;
  }

  const send = (wallet: Wallet, amount: string, destination: object, extra: object = {}) =>
    operations.run('transferFromWallet', {
      path: { wallet_id: wallet.id },
      body: { source: { asset: 'usdc', chain: 'base', amount }, destination, ...extra },
    });
  const toTron = ({ address }: Wallet) => ({ address, chain: 'tron', asset: 'usdt' });
  async function actionOf(answer: { body: unknown }): Promise<TransferActionResponse> {
    const { id, wallet_id } = answer.body as TransferActionResponse;
    const { body } = await operations.run('getWalletAction', {
      path: { wallet_id, action_id: id },
      query: { include: 'steps' },
    });
    return body as TransferActionResponse;
  }
  const held = async ({ caip2 }: Network, address: string, token: string | null) =>
    (await chains.find(caip2)!.balances(address, [token]))[0] ?? 0n;
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

  test('an exchange continues from its deposit to its payment across a restart', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    const begun = await send(wallet, '100', toTron(recipient));
    expect(begun.body).toMatchObject({ status: 'pending', source_amount: '100' });
    clock.nowMs += 2 * second;
    operations.clock.nowMs = clock.nowMs;
    await follow(operations);
    expect((await actionOf(begun)).steps).toMatchObject([{ status: 'confirmed' }, { status: 'pending' }]);

    // Server, exchange and chains restart with their stored state.
    await chains.close();
    chains = openChains();
    const served = kind === 'postgres' ? await operations.anotherProcess() : operations;
    connect(operations);
    connect(served);
    await wait(30, served);
    expect(await actionOf(begun)).toMatchObject({
      status: 'succeeded',
      destination_amount: '99.88',
      steps: [{ status: 'confirmed' }, { status: 'confirmed', caip2: tron.caip2 }],
    });
    expect(await held(tron, recipient.address, tron.token)).toBe(3_099_880_000n);
    expect(await eventTypes()).toEqual(['created', 'succeeded']);
    if (served !== operations) await served[Symbol.asyncDispose]();
  });

  test('when responses of the exchange are lost, it still pays once, and that is recorded', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    const begun = await send(wallet, '100', toTron(recipient));
    weather.loses = 'answers';
    await wait(300);
    expect((await actionOf(begun)).status).toBe('pending');
    expect(await held(tron, recipient.address, tron.token)).toBe(3_099_880_000n);
    weather.loses = 'nothing';
    await wait(60);
    expect((await actionOf(begun)).status).toBe('succeeded');
    expect(await held(tron, recipient.address, tron.token)).toBe(3_099_880_000n);
    expect(await eventTypes()).toEqual(['created', 'succeeded']);
  });

  test('several processes that follow exchanges are paid once and record it once', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    for (const amount of ['1', '2', '3']) await send(wallet, amount, toTron(recipient));
    clock.nowMs += 30 * second;
    operations.clock.nowMs = clock.nowMs;
    await follow(operations);
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    connect(other);
    const both = [operations, other, operations, other];
    await Promise.all(both.map((served) => askExchange(served)));
    await Promise.all(both.map((served) => finish(served)));
    if (other !== operations) await other[Symbol.asyncDispose]();
    expect((await eventTypes()).filter((type) => type === 'succeeded')).toHaveLength(3);
    expect(await held(tron, recipient.address, tron.token)).toBe(3_005_992_800n);
  });

  test('slow exchanges do not delay other actions', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    weather.loses = 'answers';
    // More than are ended at once.
    for (let count = 0; count < 51; count += 1) await send(wallet, '1', toTron(recipient));
    // Behind all of them.
    clock.nowMs += 1;
    operations.clock.nowMs = clock.nowMs;
    const plain = await send(wallet, '1', { address: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0' });
    await wait(60);
    expect((await actionOf(plain)).status).toBe('succeeded');
    weather.loses = 'nothing';
    await wait(120);
    expect((await eventTypes()).filter((type) => type === 'succeeded')).toHaveLength(52);
  });

  test('a deposit after the expiry of its quote is refunded', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    const real = chains.find(base.caip2)!;
    const lost = { ...real, broadcast: () => Promise.reject(new Error('connection refused')) };
    const find = (caip2: string) => (caip2 === base.caip2 ? lost : chains.find(caip2));
    Object.assign(operations.services, { chains: { find } });
    const begun = await send(wallet, '100', toTron(recipient));
    await wait(quoteSeconds + 30);
    Object.assign(operations.services, { chains });
    await wait(600);
    expect(await actionOf(begun)).toMatchObject({
      status: 'failed',
      destination_amount: null,
      failure_reason: {
        message: 'The exchange gave the deposit back: the deposit was included after the quote had expired.',
      },
    });
    expect(await held(base, wallet.address, base.token)).toBe(3_000_000_000n);
    expect(await held(tron, recipient.address, tron.token)).toBe(3_000_000_000n);
    expect(await eventTypes()).toEqual(['created', 'failed']);
  });

  test('deposits beyond the inventory of the solver are refunded', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    await chains.fund(base.caip2, {
      ...{ address: wallet.address, tokenAddress: base.token, rawAmount: 2_000_000_000_000n },
    });
    const answers = [
      await send(wallet, '600000', toTron(recipient)),
      await send(wallet, '600000', toTron(recipient)),
    ];
    await wait(60);
    const ends = await Promise.all(answers.map(actionOf));
    expect(ends.map(({ status }) => status).sort()).toEqual(['failed', 'succeeded']);
    expect(await held(base, wallet.address, base.token)).toBe(1_403_000_000_000n);
    expect(await held(tron, recipient.address, tron.token)).toBe(602_280_000_000n);
  });

  test('if a deposit can never arrive, the action is rejected and nothing is paid', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    const eth = { source: { asset: 'eth', chain: 'base', amount: '0.9' } };
    const answers = await Promise.all([
      send(wallet, '', toTron(recipient), eth),
      send(wallet, '', toTron(recipient), eth),
    ]);
    await wait(25 * 60 * 60);
    const ends = await Promise.all(answers.map(actionOf));
    const rejected = ends.find(({ status }) => status === 'rejected');
    expect(ends.map(({ status }) => status).sort()).toEqual(['rejected', 'succeeded']);
    expect(rejected).toMatchObject({
      destination_amount: null,
      fees: null,
      steps: [
        { status: 'rejected' },
        { status: 'rejected', transaction_hash: null, failure_reason: { message: expect.any(String) } },
      ],
    });
    // 0.9 * 0.9988 * 3000
    expect(await held(tron, recipient.address, tron.token)).toBe(3_000_000_000n + 2_696_760_000n);
    const waiting = await operations.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('wallet_action_steps')
      .select('action_id')
      .where('next_check_at_ms', 'is not', null)
      .execute();
    expect(waiting).toEqual([]);
  });

  test('the solver pays for the missing token account of a recipient', async () => {
    const wallet = await makeWallet();
    const { body } = await operations.run('createWallet', { body: { chain_type: 'solana' } });
    const { address } = body as Wallet;
    const toSolana = { address, chain: 'solana' };
    await operations.run('quoteWalletTransfer', {
      path: { wallet_id: wallet.id },
      body: { source: { asset: 'usdc', chain: 'base', amount: '100' }, destination: toSolana },
    });
    const before = await chains.total(solana.caip2, null);
    const stock = await held(solana, solana.solver, null);
    const begun = await send(wallet, '100', toSolana);
    await wait(30);
    expect((await actionOf(begun)).status).toBe('succeeded');
    expect(await held(solana, address, solana.token)).toBe(99_880_000n);
    // Rent of 165 bytes.
    expect(await held(solana, solana.solver, null)).toBe(stock - 2_039_280n);
    expect(await chains.total(solana.caip2, null)).toBe(before);
  });

  test('without an exchange, and with an unreachable one, nothing is signed', async () => {
    const [wallet, recipient] = [await makeWallet(), await makeWallet(tron)];
    const both = async () => [
      await send(wallet, '100', toTron(recipient)),
      await operations.run('quoteWalletTransfer', {
        path: { wallet_id: wallet.id },
        body: { source: { asset: 'usdc', chain: 'base', amount: '1' }, destination: toTron(recipient) },
      }),
    ];
    weather.loses = 'quotes';
    const unreachable = {
      status: 400,
      body: {
        error: 'the exchange could not be reached; nothing was signed or sent',
        code: 'transaction_broadcast_failure',
      },
    };
    expect(await both()).toEqual([unreachable, unreachable]);
    Object.assign(operations.services, { exchange: undefined });
    const absent = {
      status: 400,
      body: {
        error: '/destination: no exchange is configured for other assets or chains',
        code: 'not_supported',
      },
    };
    expect(await both()).toEqual([absent, absent]);
    // A chain that is not simulated is not supported by the exchange.
    const supports = (caip2: string) => caip2 !== tron.caip2;
    const { ids } = operations.services;
    Object.assign(operations.services, { exchange: chains.exchange({ ids, prices: fixedPrices, supports }) });
    const apart = {
      ...absent,
      body: { ...absent.body, error: '/destination: the exchange does not support this pair' },
    };
    expect(await both()).toEqual([apart, apart]);
    const { body } = await operations.run('listWalletActions', { path: { wallet_id: wallet.id } });
    expect(body).toMatchObject({ data: [] });
    expect(await held(base, wallet.address, base.token)).toBe(3_000_000_000n);
  });

  test('funds are created only by the faucet and never lost, including those of the solver', async () => {
    const wallets = new Map<Network, Wallet>();
    for (const network of networks) wallets.set(network, await makeWallet(network));
    // One quote of each pair, so that the solver has its stock everywhere.
    for (const from of networks) {
      for (const to of networks.filter((network) => network !== from)) {
        for (const asset of [to.native[0], to.stable[0]]) {
          const { status } = await operations.run('quoteWalletTransfer', {
            path: { wallet_id: wallets.get(from)!.id },
            body: {
              source: {
                asset: asset === to.native[0] ? from.native[0] : from.stable[0],
                chain: from.name,
                amount: '1',
              },
              destination: { address: wallets.get(to)!.address, chain: to.name, asset },
            },
          });
          expect(status).toBe(200);
        }
      }
    }
    const totals = () =>
      Promise.all(
        networks.flatMap(({ caip2, token }) => [chains.total(caip2, null), chains.total(caip2, token)]),
      );
    const before = await totals();
    const solverHas = async () => {
      const amounts = await Promise.all(
        networks.flatMap((network) => [
          held(network, network.solver, null),
          held(network, network.solver, network.token),
        ]),
      );
      return amounts;
    };
    const stock = await solverHas();
    const dollars = [333_333_333_333_333_333_333n, 6_666_666_666_666n, 4_000_000_000_000n];
    expect(stock).toEqual(dollars.flatMap((native) => [native, 1_000_000_000_000n]));

    const move = fc.record({
      from: fc.constantFrom(...networks),
      to: fc.constantFrom(...networks),
      paysNative: fc.boolean(),
      getsNative: fc.boolean(),
      dollars: fc.integer({ min: 1, max: 60 }),
      isExactOutput: fc.boolean(),
      appFeeBps: fc.constantFrom(0, 0, 25),
      recipient: fc.constantFrom('wallet', 'wallet', 'reverts'),
      loses: fc.constantFrom('nothing' as const, 'nothing' as const, 'answers' as const),
      waits: fc.constantFrom(0, 1, 31),
    });
    const begun: { body: unknown }[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 1, maxLength: 6 }), async (moves) => {
        for (const each of moves) {
          const answer = await exchangeBetween(each);
          if (answer?.status === 200) begun.push(answer);
          weather.loses = each.loses;
          if (each.waits > 0) await wait(each.waits);
        }
        weather.loses = 'nothing';
        await wait(120);
        expect(await totals()).toEqual(before);
      }),
      { numRuns: isLong ? 8 : 4, seed: 11 },
    );

    async function exchangeBetween(each: typeof move extends fc.Arbitrary<infer T> ? T : never) {
      const { from, to, paysNative, getsNative } = each;
      const [sourceAsset, , sourcePrice] = paysNative ? from.native : from.stable;
      const [asset, , price] = getsNative ? to.native : to.stable;
      if (from === to && sourceAsset === asset) return undefined;
      const unitPrice = Number(each.isExactOutput ? price : sourcePrice);
      const revertsAt = to === base ? '0x00000000000000000000000000000000dead0003' : undefined;
      return operations.run('transferFromWallet', {
        path: { wallet_id: wallets.get(from)!.id },
        body: {
          source: { asset: sourceAsset, chain: from.name },
          amount: (each.dollars / unitPrice).toFixed(6),
          amount_type: each.isExactOutput ? 'exact_output' : 'exact_input',
          fee_configuration: { type: 'total_fee_bps', value: each.appFeeBps },
          destination: {
            address: (each.recipient === 'reverts' && revertsAt) || wallets.get(to)!.address,
            chain: to.name,
            asset,
          },
        },
      });
    }

    const ended = await Promise.all(begun.map(actionOf));
    expect(ended.filter(({ status }) => status === 'pending')).toEqual([]);
    expect(ended.filter(({ status }) => status === 'succeeded').length).toBeGreaterThan(8);
    expect(ended.filter(({ status }) => status === 'failed').length).toBeGreaterThan(0);
    // The solver holds its inventory plus deposits minus payments, as reported by the actions, to the unit.
    const booked = new Map<string, bigint>();
    const book = (network: Network, asset: string, by: bigint) => {
      const key = `${network.name} ${asset === network.native[0] ? 'native' : 'token'}`;
      booked.set(key, (booked.get(key) ?? 0n) + by);
    };
    const raw = (network: Network, asset: string, amount: string) =>
      parseUnits(amount, (asset === network.native[0] ? network.native : network.stable)[1]);
    for (const action of ended.filter(({ status }) => status === 'succeeded')) {
      const { source_asset: paid = '', source_chain: on } = action;
      const from = networks.find(({ name }) => name === on)!;
      const to = networks.find(({ name }) => name === (action.destination_chain ?? on))!;
      const got = action.destination_asset ?? paid;
      book(from, paid, raw(from, paid, action.source_amount ?? '0'));
      book(to, got, -raw(to, got, action.destination_amount ?? '0'));
    }
    const expected = networks.flatMap((network, index) =>
      ['native', 'token'].map(
        (which, part) => stock[2 * index + part]! + (booked.get(`${network.name} ${which}`) ?? 0n),
      ),
    );
    expect(await solverHas()).toEqual(expected);
  }, 120_000);
});

function inWeather(exchange: Exchange, weather: Weather): Exchange {
  return {
    async quote(order) {
      if (weather.loses === 'quotes') throw new Error('connection refused');
      return exchange.quote(order);
    },
    async statusOf(quoteId, depositHash) {
      const status = await exchange.statusOf(quoteId, depositHash);
      if (weather.loses === 'answers') throw new Error('connection reset');
      return status;
    },
  };
}
