import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { routersOnChain } from '../../../../src/adapters/swap-routers.ts';
import { addVault } from '../../../../src/domain/money/earn/earn-vault.ts';
import { chainNamed } from '../../../../src/engine/assets/known-chains.ts';
import type { OperationId } from '../../../../src/generated/operations.ts';
import type { Wallet } from '../../../../src/generated/schemas.ts';
import type { EvmChain } from '../../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../../support/databases.ts';
import { openOperations, type TestOperations } from '../../../support/run-operations.ts';
import { behindProtocol, type Task } from '../../../support/signer/behind-protocol.ts';
import { newOwner } from '../../../support/signer/owner.ts';
import { runJobs } from '../../wallet-actions/run-jobs.ts';

// Swaps and earn actions of an owned wallet, by an honest server and by one that has other transactions signed.

const caip2 = 'eip155:8453';
const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const weth = '0x4200000000000000000000000000000000000006';
const friend = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const thief = '0x2222222222222222222222222222222222222222';
const ether = 10n ** 18n;
const million = 1_000_000n;

/** What the server changes in what it has signed; it is honest by default. */
let tamper: (task: Task) => Task = (task) => task;

type Transaction = Readonly<Record<string, unknown>>;
const changing =
  (change: (transaction: Transaction) => object) =>
  ({ method, params }: Task): Task => {
    const { transaction } = params as { transaction: Transaction };
    return { method, params: { transaction: { ...transaction, ...change(transaction) } } } as Task;
  };
const inData = (from: string, to: string) =>
  changing(({ data }) => ({ data: String(data).replaceAll(from.slice(2).toLowerCase(), to.slice(2)) }));

describe.each(databaseKinds)('on %s', (kind) => {
  const owner = newOwner();
  const key = owner.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  let chains: SimulatedChains;
  let server: TestOperations;
  let wallet: Wallet;
  let vaultId: string;
  const clock = { nowMs: 0 };

  beforeAll(async () => {
    chains = openSimulatedChains({
      ...{ file: ':memory:', clock: { now: () => clock.nowMs }, confirmAfterMs: undefined },
      knownTokens: () => [
        { caip2, address: usdc, symbol: 'USDC', decimals: 6 },
        { caip2, address: eurc, symbol: 'EURC', decimals: 6 },
      ],
    });
    server = await openOperations(kind, { chains, replaceKeyStore: behindProtocol((task) => tamper(task)) });
    clock.nowMs = server.clock.nowMs;
    const swapRoutes = routersOnChain({ chains, clock: server.services.clock, routerOf: () => router });
    Object.assign(server.services, { swapRoutes, incentives: chains.earn, vaultRates: chains.earn });
    wallet = await makeWallet();
    vaultId = await makeVault();
  });
  afterEach(() => {
    tamper = (task) => task;
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await chains.close();
  });

  async function makeWallet(): Promise<Wallet> {
    const body = { chain_type: 'ethereum', owner: { public_key: owner.publicKey } };
    const made = (await server.run('createWallet', { body })).body as Wallet;
    const { address } = made;
    for (const [tokenAddress, rawAmount] of [
      [null, 100n * ether],
      [usdc, 10_000n * million],
      [eurc, 10_000n * million],
    ] as const) {
      await chains.fund(caip2, { address, tokenAddress, rawAmount });
    }
    return made;
  }

  /** Keeps the fees of the wallet, which is its admin. */
  async function makeVault(): Promise<string> {
    const terms = { asset: usdc, symbol: 'USDC', decimals: 6, admin: wallet.address, offset: 0 };
    const kept = { apyBps: 1000, feeBps: 2000, feeKind: 'claimable' } as const;
    const address = await chains.earn.addVault(caip2, { ...terms, ...kept, name: 'Vault' });
    const named = { appId: server.app.id, provider: 'aave', name: undefined, feeBps: 2000 } as const;
    const vault = await server.database.orm.em
      .fork()
      .transactional((em) =>
        addVault(
          server.context(em as SqlEntityManager),
          { ...named, chain: chainNamed('base')!, address, adminWalletId: wallet.id },
          { assetAddress: usdc, assetSymbol: 'USDC', assetDecimals: 6 },
        ),
      );
    return vault.id;
  }

  async function asks(id: OperationId, body: object) {
    const { status, body: answer } = await server.run(id, {
      ...{ path: { wallet_id: wallet.id }, body, signWith: [key] },
    });
    return { ...(answer as { id?: string; code?: string }), status };
  }
  const swaps = (from: string, to: string, amount: bigint, more: object = {}, destination: object = {}) =>
    asks('executeWalletSwap', {
      ...{ source: { caip2, asset_address: from }, destination: { asset_address: to, ...destination } },
      ...{ base_amount: String(amount), ...more },
    });

  /** Lets time pass until the action has ended. Result: its status. */
  async function outcomeOf({ status, id }: { status: number; id?: string }): Promise<string> {
    expect(status).toBe(200);
    for (let round = 0; round < 12; round += 1) {
      clock.nowMs += 70_000;
      server.clock.nowMs = clock.nowMs;
      await runJobs(server);
      const path = { wallet_id: wallet.id, action_id: id! };
      const action = (await server.run('getWalletAction', { path })).body as { status: string };
      if (action.status !== 'pending') return action.status;
    }
    return 'pending';
  }
  const held = async (address = wallet.address) =>
    (chains.find(caip2) as EvmChain).balances(address, [null, usdc, eurc, weth]);

  test('the signer signs every kind of swap that the router makes', async () => {
    for (const [from, to, amount, more, destination] of [
      [usdc, eurc, 100n * million],
      [usdc, eurc, 50n * million, { amount_type: 'exact_output' }],
      ['native', usdc, ether],
      ['native', usdc, 10n * million, { amount_type: 'exact_output' }],
      [eurc, 'native', 100n * million],
      [eurc, 'native', ether / 100n, { amount_type: 'exact_output' }],
      ['native', weth, ether],
      [weth, 'native', ether / 2n],
      ['native', weth, ether, {}, { destination_address: friend }],
      [usdc, eurc, 5n * million, {}, { destination_address: friend }],
    ] as const) {
      const outcome = await outcomeOf(await swaps(from, to, amount, more, destination));
      expect([from, to, amount, outcome]).toEqual([from, to, amount, 'succeeded']);
    }
    expect(await held(friend)).toEqual([0n, 0n, expect.any(BigInt), ether]);
    expect((await held(friend))[2]).toBeGreaterThan(4n * million);
  });

  test('and of an account that runs its approval and its swap as one batch', async () => {
    const delegation = { contract: '0x00000000bebedb7c30ee418158e26e31a5a8f3e2', chain_id: 8453 };
    const calls = [{ to: friend, value: '0x1' }];
    const sent = await asks('walletRpc', { method: 'wallet_sendCalls', caip2, params: { calls } });
    expect(sent.status).toBe(200);
    clock.nowMs += 70_000;
    server.clock.nowMs = clock.nowMs;
    await runJobs(server);
    const code = await (chains.find(caip2) as EvmChain).code(wallet.address);
    expect(Buffer.from(code).toString('hex')).toContain(delegation.contract.slice(2));
    let tasks = 0;
    tamper = (task) => {
      tasks += 1;
      return task;
    };
    expect(await outcomeOf(await swaps(eurc, usdc, 7n * million))).toBe('succeeded');
    expect(tasks).toBe(1);
  });

  test('a server that has another swap signed gets no signature, and nothing is sent', async () => {
    const before = await held();
    const forged: Record<string, typeof tamper> = {
      'another router': changing(({ to }) => (to === usdc.toLowerCase() ? {} : { to: thief })),
      'another spender': inData(router, thief),
      'another recipient': inData(wallet.address, thief),
      'another token': inData(eurc, thief),
      'another amount': inData(`0x${(11n * million).toString(16).padStart(64, '0')}`, `0x${'f'.repeat(64)}`),
    };
    for (const [what, change] of Object.entries(forged)) {
      tamper = change;
      await expect(swaps(usdc, eurc, 11n * million), what).rejects.toThrow(/something else|the address of/);
    }
    expect(await held()).toEqual(before);
    tamper = (task) => task;
    expect(await outcomeOf(await swaps(usdc, eurc, 11n * million))).toBe('succeeded');
  });

  test('what only an exchange swaps is refused, because no server with a signer has one', async () => {
    const fee_configuration = { type: 'percentage_bps', value: 10 };
    for (const refused of [
      await swaps(usdc, eurc, million, { fee_configuration }),
      await swaps(usdc, usdc, million, {}, { caip2: 'eip155:10' }),
    ]) {
      expect(refused).toMatchObject({ status: 400, code: 'not_supported' });
    }
  });

  test('the signer signs deposits, withdrawals and the collection of fees, and no others', async () => {
    const deposits = (amount: string) => asks('depositEthereumEarn', { vault_id: vaultId, amount });
    for (const amount of ['100', '0.5']) expect(await outcomeOf(await deposits(amount))).toBe('succeeded');
    clock.nowMs += 365 * 86_400_000;
    server.clock.nowMs = clock.nowMs;
    const withdraws = (raw: string) => asks('withdrawEthereumEarn', { vault_id: vaultId, raw_amount: raw });
    expect(await outcomeOf(await withdraws('5000000'))).toBe('succeeded');
    const collects = () => asks('collectEthereumEarnFees', { vault_id: vaultId });
    const forged: Record<string, readonly [typeof tamper, () => Promise<unknown>]> = {
      'a deposit for another account': [inData(wallet.address, thief), () => deposits('1')],
      'a deposit elsewhere': [changing(() => ({ to: thief })), () => deposits('1')],
      'a withdrawal to another account': [inData(wallet.address, thief), () => withdraws('1000000')],
      'fees for another account': [inData(wallet.address, thief), collects],
    };
    for (const [what, [change, act]] of Object.entries(forged)) {
      tamper = change;
      await expect(act().then(refusalOf), what).rejects.toThrow(
        /something else|the address of|not_supported/,
      );
    }
    tamper = (task) => task;
    expect(await outcomeOf(await collects())).toBe('succeeded');
    expect(await held(thief)).toEqual([0n, 0n, 0n, 0n]);
  });

  /** A refusal of the signer that it explains is answered. */
  function refusalOf(answer: unknown): unknown {
    const { code } = answer as { code?: string };
    if (code === 'not_supported') throw new Error(code);
    return answer;
  }

  test('the signer signs a claim of rewards, and none for another account', async () => {
    const reward = { address: wallet.address, tokenAddress: eurc, rawAmount: 3n * million };
    await chains.earn.addReward(caip2, { ...reward, symbol: 'EURC', decimals: 6 });
    const claims = () => asks('claimEthereumEarnIncentive', { chain: 'base' });
    tamper = inData(wallet.address, thief);
    await expect(claims()).rejects.toThrow('the address of');
    tamper = (task) => task;
    expect(await outcomeOf(await claims())).toBe('succeeded');
  });
});
