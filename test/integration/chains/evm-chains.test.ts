import { hexToBytes, keccak256, toHex } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import { BATCH_EXECUTOR_ADDRESS, encodeBatch } from '../../../src/engine/signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../../../src/engine/signing/ethereum/contract-calls.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import { openSimulatedChains } from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { startAnvil } from '../../support/anvil.ts';
import { executorCode, tokenCode } from '../../support/evm-assembly.ts';

const CHAIN_ID = 31_337;
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
const token = '0xcCcCCccCCcCCccCcCcCcCcccCcCcCccCCCCCccCc'.toLowerCase();

/** A chain with controls for tests. */
interface World extends AsyncDisposable {
  readonly chain: EvmChain;
  fund(address: string, wei: bigint): Promise<unknown>;
  fundToken(address: string, amount: bigint): Promise<unknown>;
  mine(): Promise<unknown>;
  /** Mines until what was mined before is final. */
  finalize(): Promise<unknown>;
}

const worlds: Record<string, () => Promise<World>> = {
  async simulated() {
    const clock = adjustableClock({ startMs: Date.UTC(2026, 0, 1), frozen: true });
    const chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: undefined });
    const caip2 = `eip155:${CHAIN_ID}`;
    return {
      chain: chains.find(caip2) as EvmChain,
      fund: (address, rawAmount) => chains.fund(caip2, { address, tokenAddress: null, rawAmount }),
      fundToken: (address, rawAmount) =>
        chains.fund(caip2, { address, tokenAddress: token, rawAmount, decimals: 6 }),
      mine: () => chains.mine(caip2, 1),
      finalize: () => chains.mine(caip2, 65),
      [Symbol.asyncDispose]: () => chains.close(),
    };
  },
  async anvil() {
    const anvil = await startAnvil(CHAIN_ID);
    await anvil.ask('anvil_setCode', token, tokenCode);
    await anvil.ask('anvil_setCode', BATCH_EXECUTOR_ADDRESS, executorCode);
    const chains = connectChains([{ caip2: `eip155:${CHAIN_ID}`, urls: [anvil.url] }], silentLog);
    return {
      chain: chains.find(`eip155:${CHAIN_ID}`) as EvmChain,
      fund: (address, wei) => anvil.ask('anvil_setBalance', address, toHex(wei)),
      fundToken: (address, amount) =>
        anvil.ask(
          'anvil_setStorageAt',
          token,
          `0x${address.slice(2).padStart(64, '0')}`,
          toHex(amount, { size: 32 }),
        ),
      mine: () => anvil.ask('evm_mine'),
      finalize: () => anvil.ask('anvil_mine', toHex(65)),
      [Symbol.asyncDispose]: () => anvil[Symbol.asyncDispose](),
    };
  },
};

let accounts = 0;
/** A new account. */
function newAccount(): PrivateKeyAccount {
  accounts += 1;
  return privateKeyToAccount(keccak256(toHex(`account ${accounts}`)));
}

function newAddress(): `0x${string}` {
  return newAccount().address;
}

type Transaction = Parameters<PrivateKeyAccount['signTransaction']>[0];

/** Signed by viem, by default of type 2. */
async function sign(account: PrivateKeyAccount, transaction: Record<string, unknown>): Promise<Uint8Array> {
  const usual = { chainId: CHAIN_ID, type: 'eip1559', gas: 21_000n, ...fees(10n * GWEI), ...transaction };
  return hexToBytes(await account.signTransaction(usual as Transaction));
}

function fees(cap: bigint) {
  return { maxFeePerGas: cap, maxPriorityFeePerGas: cap / 10n };
}

function call(data: Uint8Array): { to: string; gas: bigint; data: `0x${string}` } {
  return { to: token, gas: 200_000n, data: toHex(data) };
}

describe.each(Object.entries(worlds))('an EVM chain, %s', (_, open) => {
  let world: World;
  let chain: EvmChain;

  beforeAll(async () => {
    world = await open();
    chain = world.chain;
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function fundedAccount(wei = ETHER): Promise<PrivateKeyAccount> {
    const account = newAccount();
    await world.fund(account.address, wei);
    return account;
  }

  async function accepted(signedBytes: Uint8Array): Promise<string> {
    const outcome = await chain.broadcast(signedBytes);
    if (!outcome.isAccepted) throw new Error(outcome.message);
    return outcome.hash;
  }

  /** Broadcasts, mines a block, and returns the status. */
  async function settled(signedBytes: Uint8Array) {
    const hash = await accepted(signedBytes);
    await world.mine();
    return chain.statusOf(hash, signedBytes);
  }

  test('a transfer costs 21000 gas, is identified by the hash of its bytes and moves the amount', async () => {
    const [alice, bob] = [await fundedAccount(), newAddress()];
    const transfer = { from: alice.address, to: bob, value: 5n, data: new Uint8Array() };
    expect(await chain.simulate([transfer])).toEqual({ succeeds: true, units: [21_000n] });
    const signed = await sign(alice, { nonce: 0, to: bob, value: 5n });
    const hash = await accepted(signed);
    expect(hash).toBe(keccak256(signed));
    expect(await chain.statusOf(hash, signed)).toMatchObject({ kind: 'pending' });
    expect(await chain.nonce(alice.address)).toBe(1n);
    await world.mine();
    const status = await chain.statusOf(hash, signed);
    if (status.kind !== 'included') throw new Error(status.kind);
    expect(status.feePaid % 21_000n).toBe(0n);
    expect(status.isFinal).toBe(false);
    expect(await chain.balances(bob, [null, token])).toEqual([5n, 0n]);
    expect(await chain.balances(alice.address, [null])).toEqual([ETHER - 5n - status.feePaid]);
  });

  test('the suggested fees are accepted', async () => {
    const alice = await fundedAccount();
    const { maxFeePerGas, maxPriorityFeePerGas } = await chain.fees();
    const signed = await sign(alice, { nonce: 0, to: newAddress(), maxFeePerGas, maxPriorityFeePerGas });
    expect((await settled(signed)).kind).toBe('included');
  });

  test.each([
    ['legacy', { type: 'legacy', gasPrice: 10n * GWEI }],
    [
      'with an access list',
      {
        type: 'eip2930',
        gasPrice: 10n * GWEI,
        gas: 40_000n,
        accessList: [{ address: token, storageKeys: [`0x${'0'.repeat(64)}`] }],
      },
    ],
  ])('a transaction %s is accepted', async (_name, fields) => {
    const [alice, bob] = [await fundedAccount(), newAddress()];
    const { maxFeePerGas: _1, maxPriorityFeePerGas: _2, ...none } = fees(1n);
    const signed = await sign(alice, {
      nonce: 0,
      to: bob,
      value: 1n,
      ...none,
      maxFeePerGas: undefined,
      maxPriorityFeePerGas: undefined,
      ...fields,
    });
    const status = await settled(signed);
    expect(status.kind).toBe('included');
    const gas = 'accessList' in fields ? 21_000n + 2_400n + 1_900n : 21_000n;
    expect(status.kind === 'included' && status.feePaid).toBe(gas * 10n * GWEI);
  });

  test('the same bytes can be broadcast again, before the block and after it', async () => {
    const alice = await fundedAccount();
    const signed = await sign(alice, { nonce: 0, to: newAddress(), value: 1n });
    const hash = await accepted(signed);
    expect(await chain.broadcast(signed)).toEqual({ isAccepted: true, hash });
    await world.mine();
    const again = await chain.broadcast(signed);
    // Nodes prune included transactions; then the nonce shows the status.
    expect(again.isAccepted || again.reason === 'stale').toBe(true);
    expect((await chain.statusOf(hash, signed)).kind).toBe('included');
  });

  test('a used nonce is stale, and a future one waits', async () => {
    const alice = await fundedAccount();
    const second = await sign(alice, { nonce: 1, to: newAddress(), value: 1n });
    const hash = await accepted(second);
    await world.mine();
    expect(await chain.statusOf(hash, second)).toMatchObject({ kind: 'pending' });
    expect((await settled(await sign(alice, { nonce: 0, to: newAddress() }))).kind).toBe('included');
    await world.mine();
    expect((await chain.statusOf(hash, second)).kind).toBe('included');
    const late = await chain.broadcast(await sign(alice, { nonce: 0, to: newAddress(), value: 9n }));
    expect(late).toMatchObject({ isAccepted: false, reason: 'stale' });
  });

  test('a higher fee replaces a pending transaction, the same fee does not', async () => {
    const [alice, bob] = [await fundedAccount(), newAddress()];
    const first = await sign(alice, { nonce: 0, to: bob, value: 1n });
    const firstHash = await accepted(first);
    const cheap = await sign(alice, { nonce: 0, to: bob, value: 2n });
    expect(await chain.broadcast(cheap)).toMatchObject({ isAccepted: false, reason: 'underpriced' });
    const better = await sign(alice, { nonce: 0, to: bob, value: 3n, ...fees(12n * GWEI) });
    expect((await settled(better)).kind).toBe('included');
    expect(await chain.balances(bob, [null])).toEqual([3n]);
    await world.finalize();
    const byHash = keccak256(better);
    expect(await chain.statusOf(firstHash, first)).toEqual({ kind: 'replaced', byHash });
  });

  test('a transaction that was never sent is unknown', async () => {
    const alice = await fundedAccount();
    const signed = await sign(alice, { nonce: 0, to: newAddress() });
    const status = await chain.statusOf(keccak256(signed), signed);
    expect(status).toMatchObject({ kind: 'unknown', isExpired: false });
  });

  test.each([
    ['more than the account has', { value: 2n * ETHER }, 'insufficient_funds'],
    ['another chain', { chainId: 1 }, 'invalid'],
    ['less gas than a transfer takes', { gas: 20_999n }, 'invalid'],
  ])('%s is refused', async (_name, fields, reason) => {
    const alice = await fundedAccount();
    const outcome = await chain.broadcast(await sign(alice, { nonce: 0, to: newAddress(), ...fields }));
    expect(outcome).toMatchObject({ isAccepted: false, reason });
  });

  test('bytes that are not a transaction are refused', async () => {
    expect(await chain.broadcast(Uint8Array.of(2, 0xc0))).toMatchObject({
      isAccepted: false,
      reason: 'invalid',
    });
  });

  test('simulating an amount above the balance reports that', async () => {
    const alice = await fundedAccount();
    const data = new Uint8Array();
    const simulation = await chain.simulate([
      { from: alice.address, to: newAddress(), value: 2n * ETHER, data },
    ]);
    expect(simulation).toMatchObject({ succeeds: false, reason: 'insufficient_funds' });
  });

  test('a token is transferred, and its read-only calls are answered', async () => {
    const [alice, bob] = [await fundedAccount(), newAddress()];
    await world.fundToken(alice.address, 500n);
    const data = encodeTokenCall({ name: 'transfer', to: bob, amount: 200n });
    expect(await chain.simulate([{ from: alice.address, to: token, value: 0n, data }])).toMatchObject({
      succeeds: true,
    });
    expect((await settled(await sign(alice, { nonce: 0, ...call(data) }))).kind).toBe('included');
    expect(await chain.balances(bob, [token, null])).toEqual([200n, 0n]);
    expect(await chain.balances(alice.address, [token])).toEqual([300n]);
    const decimals = await chain.read({ to: token, data: encodeTokenCall({ name: 'decimals' }) });
    expect(BigInt(toHex(decimals))).toBe(6n);
    expect(await chain.read({ to: bob, data: encodeTokenCall({ name: 'decimals' }) })).toEqual(
      new Uint8Array(),
    );
  });

  test('too many tokens: the simulation fails, and in a block only the fee is charged', async () => {
    const [alice, bob] = [await fundedAccount(), newAddress()];
    await world.fundToken(alice.address, 100n);
    const data = encodeTokenCall({ name: 'transfer', to: bob, amount: 101n });
    const simulation = await chain.simulate([{ from: alice.address, to: token, value: 0n, data }]);
    expect(simulation).toMatchObject({ succeeds: false, reason: 'reverts' });
    const status = await settled(await sign(alice, { nonce: 0, ...call(data) }));
    if (status.kind !== 'reverted') throw new Error(status.kind);
    expect(await chain.balances(alice.address, [token, null])).toEqual([100n, ETHER - status.feePaid]);
    expect(await chain.balances(bob, [token])).toEqual([0n]);
    expect(await chain.nonce(alice.address)).toBe(1n);
  });

  test('an allowance permits another account to spend up to its amount', async () => {
    const [alice, bob, carol] = [await fundedAccount(), await fundedAccount(), newAddress()];
    await world.fundToken(alice.address, 100n);
    const approve = encodeTokenCall({ name: 'approve', spender: bob.address, amount: 60n });
    await settled(await sign(alice, { nonce: 0, ...call(approve) }));
    const spend = (amount: bigint) =>
      call(encodeTokenCall({ name: 'transferFrom', from: alice.address, to: carol, amount }));
    expect((await settled(await sign(bob, { nonce: 0, ...spend(61n) }))).kind).toBe('reverted');
    expect((await settled(await sign(bob, { nonce: 1, ...spend(40n) }))).kind).toBe('included');
    expect((await settled(await sign(bob, { nonce: 2, ...spend(21n) }))).kind).toBe('reverted');
    expect(await chain.balances(carol, [token])).toEqual([40n]);
    const rest = encodeTokenCall({ name: 'allowance', owner: alice.address, spender: bob.address });
    expect(BigInt(toHex(await chain.read({ to: token, data: rest })))).toBe(20n);
  });

  describe('a batch', () => {
    /** A type-4 transaction of the account to itself, delegated to the executor by the same account. */
    async function signBatch(
      account: PrivateKeyAccount,
      calls: Parameters<typeof encodeBatch>[0],
      delegates = true,
    ) {
      const nonce = Number(await chain.nonce(account.address));
      const authorization = {
        contractAddress: BATCH_EXECUTOR_ADDRESS,
        chainId: CHAIN_ID,
        nonce: nonce + 1,
      } as const;
      const list = delegates ? [await account.signAuthorization(authorization)] : [];
      return sign(account, {
        type: delegates ? 'eip7702' : 'eip1559',
        ...(delegates ? { authorizationList: list } : {}),
        nonce,
        gas: 400_000n,
        to: account.address,
        data: toHex(encodeBatch(calls)),
      });
    }

    const none = new Uint8Array();

    test('a batch is simulated before signing, delegates the account and runs every call', async () => {
      const [alice, bob] = [await fundedAccount(), newAddress()];
      await world.fundToken(alice.address, 50n);
      const calls = [
        { to: bob, value: 7n, data: none },
        { to: token, value: 0n, data: encodeTokenCall({ name: 'transfer', to: bob, amount: 30n }) },
      ];
      const asked = { from: alice.address, to: alice.address, value: 0n, data: encodeBatch(calls) };
      const tried = await chain.simulate([{ ...asked, delegatedTo: BATCH_EXECUTOR_ADDRESS }]);
      expect(tried).toMatchObject({ succeeds: true });
      expect(await chain.code(alice.address)).toEqual(new Uint8Array());
      expect((await settled(await signBatch(alice, calls))).kind).toBe('included');
      expect(toHex(await chain.code(alice.address))).toBe(`0xef0100${BATCH_EXECUTOR_ADDRESS.slice(2)}`);
      expect(await chain.balances(bob, [null, token])).toEqual([7n, 30n]);
      expect(await chain.nonce(alice.address)).toBe(2n);
      // From now on no authorization is needed.
      expect((await settled(await signBatch(alice, [calls[0]!], false))).kind).toBe('included');
      expect(await chain.balances(bob, [null])).toEqual([14n]);
    });

    test('a batch is rolled back when one call fails, but the delegation stays', async () => {
      const [alice, bob] = [await fundedAccount(), newAddress()];
      const calls = [
        { to: bob, value: 7n, data: none },
        { to: token, value: 0n, data: encodeTokenCall({ name: 'transfer', to: bob, amount: 1n }) },
      ];
      const asked = { from: alice.address, to: alice.address, value: 0n, data: encodeBatch(calls) };
      const tried = await chain.simulate([{ ...asked, delegatedTo: BATCH_EXECUTOR_ADDRESS }]);
      expect(tried).toMatchObject({ succeeds: false, reason: 'reverts' });
      expect((await settled(await signBatch(alice, calls))).kind).toBe('reverted');
      expect(await chain.balances(bob, [null, token])).toEqual([0n, 0n]);
      expect(toHex(await chain.code(alice.address))).toBe(`0xef0100${BATCH_EXECUTOR_ADDRESS.slice(2)}`);
    });

    test('a batch is refused from other accounts', async () => {
      const [alice, mallory] = [await fundedAccount(), await fundedAccount()];
      await settled(await signBatch(alice, []));
      const data = toHex(encodeBatch([{ to: mallory.address, value: 1n, data: none }]));
      const stolen = await sign(mallory, { nonce: 0, gas: 200_000n, to: alice.address, data });
      expect((await settled(stolen)).kind).toBe('reverted');
    });

    test('a batch with a stale authorization does not delegate', async () => {
      const [alice, bob] = [await fundedAccount(), newAddress()];
      const stale = await alice.signAuthorization({
        contractAddress: BATCH_EXECUTOR_ADDRESS,
        chainId: CHAIN_ID,
        nonce: 0,
      });
      const data = toHex(encodeBatch([{ to: bob, value: 7n, data: none }]));
      const fields = { type: 'eip7702', authorizationList: [stale], nonce: 0, gas: 400_000n };
      expect((await settled(await sign(alice, { ...fields, to: alice.address, data }))).kind).toBe(
        'included',
      );
      expect(await chain.code(alice.address)).toEqual(new Uint8Array());
      expect(await chain.balances(bob, [null])).toEqual([0n]);
    });
  });
});
