import fc from 'fast-check';
import { decodeFunctionResult, encodeFunctionData, erc20Abi, erc4626Abi, type Hex, parseAbi } from 'viem';
import { expect, test } from 'vitest';
import { bytesTo0xHex } from '../../../src/engine/crypto/encoding.ts';
import { pairAddress } from '../../../src/sandbox/simulated/chains/evm/contracts/addresses.ts';
import { addReward, provenRewards } from '../../../src/sandbox/simulated/chains/evm/contracts/rewards.ts';
import { deployVault, type VaultChange } from '../../../src/sandbox/simulated/chains/evm/contracts/vaults.ts';
import { give } from '../../../src/sandbox/simulated/chains/evm/faucet.ts';
import { isLong } from '../../figures/figure.ts';
import { type SimulatedEvm, simulatedEvm } from './simulated-evm.ts';

const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const weth = '0x4200000000000000000000000000000000000006';
const router = '0x7a250d5630b4cf539739df2c5dacb4c659f2488d';
const distributor = '0x3ef3d8ba38ebe18db133cec108f4d14ce00dd9ae';
const vault = `0x${'4a'.repeat(20)}`;
const people = [1, 2, 3].map((fill) => `0x${String(fill).repeat(40)}`);
const admin = `0x${'ad'.repeat(20)}`;
const year = 31_536_000;
const start = { number: 0, seconds: 0 };
const tokens = [{ address: usdc, symbol: 'USDC', decimals: 6 }];

const swaps = parseAbi([
  'function swapExactTokensForETH(uint256, uint256, address[], address, uint256)',
  'function swapExactETHForTokens(uint256, address[], address, uint256) payable',
]);
const merkl = parseAbi(['function claim(address[], address[], uint256[], bytes32[][])']);
const fees = parseAbi([
  'function getClaimableFees() view returns (uint256)',
  'function withdrawFees(address, uint256)',
]);

const encode = (abi: readonly unknown[], functionName: string, ...args: unknown[]): Hex =>
  encodeFunctionData({ abi, functionName, args } as never);

function balances(evm: SimulatedEvm, owner: string): bigint[] {
  return [usdc, vault, weth, ''].map((asset) => evm.state.ledger.balance(owner, asset));
}

test('the product of the reserves never falls, and no swap there and back gains', async () => {
  // Fewer units would be worth nothing on the way back, which the pair refuses, so one of the two balances would grow.
  const amount = fc.oneof(fc.constant(0n), fc.bigInt(10_000n, 10n ** 12n));
  const step = fc.record({ who: fc.nat(2), isBuying: fc.boolean(), amount });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      using evm = simulatedEvm(tokens);
      for (const who of people) {
        evm.give(who, '', 10n ** 24n);
        evm.give(who, usdc, 10n ** 13n, 6);
        await evm.call({
          from: who,
          to: usdc,
          data: encode(erc20Abi, 'approve', router, 2n ** 255n),
          seconds: 1,
        });
      }
      const pair = pairAddress(usdc, weth);
      const product = () => evm.state.ledger.balance(pair, usdc) * evm.state.ledger.balance(pair, weth);
      for (const { who, isBuying, amount } of steps) {
        const before = { product: product(), held: balances(evm, people[who]!) };
        const from = people[who]!;
        const path = isBuying ? [weth, usdc] : [usdc, weth];
        const there = isBuying
          ? { data: encode(swaps, 'swapExactETHForTokens', 0n, path, from, 9n), value: amount * 10n ** 6n }
          : { data: encode(swaps, 'swapExactTokensForETH', amount, 0n, path, from, 9n), value: 0n };
        await evm.call({ from, to: router, ...there, seconds: 1 });
        expect(product()).toBeGreaterThanOrEqual(before.product);
        const got = balances(evm, from).map((amount, index) => amount - before.held[index]!);
        const back = isBuying
          ? {
              data: encode(swaps, 'swapExactTokensForETH', got[0], 0n, path.toReversed(), from, 9n),
              value: 0n,
            }
          : { data: encode(swaps, 'swapExactETHForTokens', 0n, path.toReversed(), from, 9n), value: got[3]! };
        await evm.call({ from, to: router, ...back, seconds: 1 });
        const after = balances(evm, from);
        expect(after[0]! <= before.held[0]! && after[3]! <= before.held[3]!).toBe(true);
      }
      // The wrapped asset is backed, and nothing stays in the router.
      expect(evm.state.ledger.total(weth)).toBe(evm.state.ledger.balance(weth, ''));
      expect(balances(evm, router)).toEqual([0n, 0n, 0n, 0n]);
    }),
    { numRuns: isLong ? 300 : 6 },
  );
});

async function withVault(terms: {
  apyBps?: number;
  feeBps?: number;
  feeKind?: 'claimable' | 'shares';
  offset?: number;
}) {
  const evm = simulatedEvm(tokens);
  const plan = { address: vault, asset: usdc, decimals: 6, symbol: 'USDC', admin, ...terms };
  deployVault(evm.state, start, { offset: 0, apyBps: 0, feeBps: 0, feeKind: 'shares', ...plan });
  for (const who of people) {
    evm.give(who, usdc, 10n ** 12n, 6);
    await evm.call({ from: who, to: usdc, data: encode(erc20Abi, 'approve', vault, 2n ** 255n), seconds: 0 });
  }
  const ask = async (seconds: number, name: string, ...args: unknown[]): Promise<bigint> =>
    BigInt(
      `0x${Buffer.from((await evm.read(vault, encode(erc4626Abi, name, ...args), seconds))!).toString('hex')}`,
    );
  const act = (seconds: number, from: string, name: string, ...args: unknown[]) =>
    evm.call({ from, to: vault, data: encode(erc4626Abi, name, ...args), seconds });
  const change = (wanted: VaultChange) => evm.changeVault(vault, wanted, 0);
  return { evm, change, ask, act };
}

test('a year on the clock pays a year of interest, however often the vault is used in between', async () => {
  const { evm, ask, act } = await withVault({ apyBps: 410 });
  await act(0, people[0]!, 'deposit', 100_000_000n, people[0]);
  expect(await ask(year, 'totalAssets')).toBe(104_100_000n);
  // A unit of interest takes about 8 seconds; nothing is lost by paying it every second.
  for (let second = 1; second <= 60; second += 1)
    await act(second, people[1]!, 'withdraw', 0n, people[1], people[1]);
  expect(await ask(60, 'totalAssets')).toBe(
    100_000_000n + (100_000_000n * 410n * 60n) / (10_000n * BigInt(year)),
  );
  await act(year, people[0]!, 'redeem', await ask(year, 'maxRedeem', people[0]), people[0], people[0]);
  const earned = evm.state.ledger.balance(people[0]!, usdc) - 10n ** 12n;
  expect(Number(earned)).toBeGreaterThanOrEqual(4_099_998);
  expect(Number(earned)).toBeLessThanOrEqual(4_100_001);
  expect(evm.state.ledger.balance(people[0]!, vault)).toBe(0n);
  evm[Symbol.dispose]();
});

test('deposit and withdrawal in one block never gain, and the vault covers all shares', async () => {
  const amount = fc.oneof(fc.bigInt(1n, 1000n), fc.bigInt(1n, 10n ** 11n));
  const step = fc.record({
    who: fc.nat(2),
    kind: fc.constantFrom('deposit', 'mint', 'withdraw', 'redeem', 'donate', 'there and back'),
    amount,
    wait: fc.integer({ min: 0, max: year / 12 }),
  });
  const terms = fc.record({
    apyBps: fc.integer({ min: 0, max: 2000 }),
    feeBps: fc.integer({ min: 0, max: 3000 }),
    feeKind: fc.constantFrom('claimable' as const, 'shares' as const),
    offset: fc.constantFrom(0, 12),
  });
  await fc.assert(
    fc.asyncProperty(terms, fc.array(step, { maxLength: 10 }), async (chosen, steps) => {
      const { evm, ask, act } = await withVault(chosen);
      let seconds = 0;
      for (const { who, kind, amount: raw, wait } of steps) {
        seconds += wait;
        const from = people[who]!;
        const units = kind === 'mint' || kind === 'redeem' ? raw * 10n ** BigInt(chosen.offset) : raw;
        if (kind === 'donate') {
          await evm.call({ from, to: usdc, data: encode(erc20Abi, 'transfer', vault, raw), seconds });
        } else if (kind === 'there and back') {
          const before = balances(evm, from);
          await act(seconds, from, 'deposit', raw, from);
          await act(seconds, from, 'redeem', balances(evm, from)[1]! - before[1]!, from, from);
          expect(balances(evm, from)[0]).toBeLessThanOrEqual(before[0]!);
          expect(balances(evm, from)[1]).toBe(before[1]);
        } else {
          const rest = kind === 'withdraw' || kind === 'redeem' ? [from, from] : [from];
          await act(seconds, from, kind, units, ...rest);
        }
        let owed = 0n;
        for (const owner of [...people, admin]) {
          owed += await ask(seconds, 'convertToAssets', balances(evm, owner)[1]);
        }
        expect(await ask(seconds, 'totalAssets')).toBeGreaterThanOrEqual(owed);
      }
      // Every holder can take out what the shares are worth.
      for (const owner of [...people, admin]) {
        const result = await act(seconds, owner, 'redeem', balances(evm, owner)[1], owner, owner);
        expect(result.revert).toBeUndefined();
      }
      evm[Symbol.dispose]();
    }),
    { numRuns: isLong ? 500 : 10 },
  );
});

test('the app gets its part of the yield: as fees to collect, or as shares', async () => {
  for (const feeKind of ['claimable', 'shares'] as const) {
    const { evm, ask, act } = await withVault({ apyBps: 1000, feeBps: 2000, feeKind });
    await act(0, people[0]!, 'deposit', 1_000_000_000n, people[0]);
    await act(year, people[1]!, 'deposit', 0n, people[1]);
    // 100 USDC of interest, 20 of them for the app.
    const position = await ask(year, 'convertToAssets', balances(evm, people[0]!)[1]);
    expect(Number(position)).toBeCloseTo(1_080_000_000, -1);
    if (feeKind === 'claimable') {
      const answer = (await evm.read(vault, encode(fees, 'getClaimableFees'), year))!;
      expect(BigInt(`0x${Buffer.from(answer).toString('hex')}`)).toBe(20_000_000n);
      const collect = async (from: string, amount: bigint) => {
        const data = encode(fees, 'withdrawFees', admin, amount);
        return (await evm.call({ from, to: vault, data, seconds: year })).revert;
      };
      expect(await collect(people[0]!, 1n)).toContain('not the owner');
      expect(await collect(admin, 20_000_001n)).toContain('INSUFFICIENT_FEES');
      expect(await collect(admin, 20_000_000n)).toBeUndefined();
    } else {
      expect(await evm.read(vault, encode(fees, 'getClaimableFees'), year)).toBeUndefined();
      await act(year, admin, 'redeem', balances(evm, admin)[1], admin, admin);
    }
    expect(Number(balances(evm, admin)[0])).toBeCloseTo(20_000_000, -1);
    evm[Symbol.dispose]();
  }
});

test('a vault pays out only what it has not lent, and nothing while it is paused', async () => {
  const { evm, change, ask, act } = await withVault({});
  await act(0, people[0]!, 'deposit', 1_000_000n, people[0]);
  expect(await change({ rawLiquidity: 1_000_001n })).toBe(1_000_000n);
  expect(await change({ rawLiquidity: 300_000n })).toBeUndefined();
  expect(await ask(0, 'totalAssets')).toBe(1_000_000n);
  expect(await ask(0, 'maxWithdraw', people[0])).toBe(300_000n);
  const withdrawn = await act(0, people[0]!, 'withdraw', 300_001n, people[0], people[0]);
  expect(withdrawn.revert).toBe(
    `execution reverted: ERC4626ExceededMaxWithdraw(${people[0]}, 300001, 300000)`,
  );
  await change({ isPaused: true, rawLiquidity: 1_000_000n });
  expect(await ask(0, 'maxDeposit', people[0])).toBe(0n);
  expect((await act(0, people[0]!, 'deposit', 1n, people[0])).revert).toContain('ERC4626ExceededMaxDeposit');
  await change({ isPaused: false });
  expect((await act(0, people[0]!, 'redeem', 1_000_000n, people[0], people[0])).revert).toBeUndefined();
  evm[Symbol.dispose]();
});

test('rewards are paid once, against a proof, to the account itself', async () => {
  using evm = simulatedEvm(tokens);
  const [alice, bob] = people as [string, string];
  const reward = { token: usdc, decimals: 6, symbol: 'USDC' };
  for (const [index, user] of [alice, bob, people[2]!, admin, vault].entries()) {
    addReward(evm.state, start, { ...reward, user, amount: 100n + BigInt(index) });
  }
  addReward(evm.state, start, { ...reward, user: bob, amount: 50n });
  const proven = () => provenRewards(evm.state, bob)[0]!;
  const claim = (from: string, { user = bob, amount = proven().amount, proof = proven().proof } = {}) =>
    evm.call({
      from,
      to: distributor,
      data: encode(merkl, 'claim', [user], [usdc], [amount], [proof]),
      seconds: 1,
    });
  expect((await claim(bob, { amount: 152n })).revert).toContain('InvalidProof');
  expect((await claim(alice)).revert).toContain('NotWhitelisted');
  expect((await claim(bob)).revert).toBeUndefined();
  expect(evm.state.ledger.balance(bob, usdc)).toBe(151n);
  expect(await claim(bob)).toEqual({ revert: undefined, movements: [] });
  addReward(evm.state, start, { ...reward, user: bob, amount: 9n });
  expect(proven()).toMatchObject({ amount: 160n, claimed: 151n });
  expect((await claim(bob)).movements).toMatchObject([{ sender: distributor, recipient: bob, amount: 9n }]);
});

test('a swap that reverts changes nothing', async () => {
  using evm = simulatedEvm(tokens);
  evm.give(people[0]!, '', 10n ** 18n);
  const data = encode(swaps, 'swapExactETHForTokens', 10n ** 30n, [weth, usdc], people[0], 9n);
  const { revert } = await evm.call({ from: people[0]!, to: router, data, value: 10n ** 17n, seconds: 1 });
  expect(revert).toBe('execution reverted: UniswapV2Router: INSUFFICIENT_OUTPUT_AMOUNT');
  expect(balances(evm, people[0]!)).toEqual([0n, 0n, 0n, 10n ** 18n]);
  expect(evm.state.ledger.balance(pairAddress(usdc, weth), usdc)).toBe(1_000_000_000_000n);
  expect(evm.state.ledger.total(usdc)).toBe(1_000_000_000_000n);
});

test.each(['T', 'TOKEN', 'A'.repeat(31), 'B'.repeat(32), 'Ü'.repeat(40)])(
  'a token of the faucet has the symbol %s in its storage',
  async (symbol) => {
    using evm = simulatedEvm(tokens);
    const token = `0x${'70'.repeat(20)}` as const;
    give(evm.state, start, { owner: people[0]!, asset: token, rawAmount: 7n, decimals: 3, symbol });
    const ask = async (functionName: 'symbol' | 'name' | 'decimals' | 'totalSupply') =>
      decodeFunctionResult({
        ...{ abi: erc20Abi, functionName },
        data: bytesTo0xHex((await evm.read(token, encode(erc20Abi, functionName), 1))!) as Hex,
      });
    expect([await ask('symbol'), await ask('name'), await ask('decimals'), await ask('totalSupply')]).toEqual(
      [...[symbol, symbol, 3, 7n]],
    );
  },
);
