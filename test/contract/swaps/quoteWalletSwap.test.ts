import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { arbitrum, base, eurc, swapBody, swapsIn, usdc, usdcOnArbitrum, weth } from './swaps-in.ts';

let sandbox: TestSandbox;
let wallet: Wallet;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
});

const { quote, makeWallet } = swapsIn(() => sandbox);
const nowSeconds = () => Math.floor(sandbox.clock.now() / 1000);

test('a quote on one chain needs no funds, and shows the minimum and the gas', async () => {
  const { est_output_amount: expected, ...shown } = await quote(wallet, swapBody(usdc, 'native', 1_500_000n));
  expect(shown).toEqual({
    ...{ caip2: base, input_token: usdc, output_token: 'native', input_amount: '1500000' },
    // Half a percent less, rounded down.
    minimum_output_amount: String((BigInt(expected) * 9950n) / 10_000n),
    gas_estimate: expect.stringMatching(/^\d+$/),
    expires_at: nowSeconds() + 60,
  });
  // An allowance saves the approval.
  const funded = await makeWallet(1_500_000n);
  expect(Number((await quote(funded, swapBody(usdc, eurc, 1000n))).gas_estimate)).toBeGreaterThan(100_000);
});

/** Reserves of $1,000,000 a side: USDC 1, EURC 1.1 and ETH 3000 dollars. */
const reserves = {
  [usdc]: 1_000_000n * 10n ** 6n,
  [eurc]: 909_090_909_090n,
  native: 333_333_333_333_333_333_333n,
};
const tokens = [usdc, eurc, 'native'] as const;
const pairs = tokens.flatMap((from) => tokens.filter((to) => to !== from).map((to) => [from, to] as const));

// The rule of a pair in Uniswap V2: (x·1000 + 997·in)·(y − out) ≥ 1000·x·y.
const keeps = (x: bigint, y: bigint, input: bigint, output: bigint): boolean =>
  output < y && (x * 1000n + input * 997n) * (y - output) >= x * y * 1000n;

test('an exact input yields the most that the pool can give, an exact output costs the least', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...pairs),
      fc.integer({ min: 1, max: 900_000_000 }),
      fc.constantFrom(0, 1, 50, 9999, 10_000),
      async ([from, to], parts, slippage_bps) => {
        const [x, y] = [reserves[from], reserves[to]];
        const input = (x * BigInt(parts)) / 10n ** 9n;
        const sold = await quote(wallet, swapBody(from, to, input, { slippage_bps }));
        const out = BigInt(sold.est_output_amount);
        // The way through the wrapped asset is never better than the direct one while all pools are even.
        expect(keeps(x, y, input, out) && !keeps(x, y, input, out + 1n)).toBe(true);
        expect(BigInt(sold.minimum_output_amount)).toBe((out * BigInt(10_000 - slippage_bps)) / 10_000n);
        const exact = { amount_type: 'exact_output', slippage_bps };
        const bought = await quote(wallet, swapBody(from, to, out, exact));
        const cost = BigInt(bought.input_amount);
        expect(bought).toMatchObject({ est_output_amount: String(out), minimum_output_amount: String(out) });
        // The contract adds one unit to what it needs, rounded down.
        expect(keeps(x, y, cost, out) && !keeps(x, y, cost - 2n, out)).toBe(true);
      },
    ),
    { numRuns: process.env.TEST_LONG === '1' ? 500 : 15 },
  );
});

test('the wrapped asset is worth the native one', async () => {
  for (const type of ['exact_input', 'exact_output']) {
    const body = swapBody('native', weth, 7n, { amount_type: type, slippage_bps: 10_000 });
    expect(await quote(wallet, body)).toMatchObject({
      ...{ input_amount: '7', est_output_amount: '7', minimum_output_amount: '7' },
    });
  }
});

test('a quote across chains shows the fees, and the gas of a wallet that has some', async () => {
  const body = {
    ...swapBody(usdc, usdcOnArbitrum, 100_000_000n, { slippage_bps: 50 }),
    destination: { asset_address: usdcOnArbitrum, caip2: arbitrum },
  };
  const shown = {
    ...{ caip2: base, destination_caip2: arbitrum, input_token: usdc, output_token: usdcOnArbitrum },
    ...{ input_amount: '100000000', est_output_amount: '99880000', minimum_output_amount: '99380600' },
    estimated_fees: [{ type: 'relayer', amount: '0.12' }],
    gas_estimate: expect.stringMatching(/^\d+$/),
    expires_at: nowSeconds() + 600,
  };
  expect(await quote(wallet, body)).toEqual(shown);
  const gas = { amount: expect.any(String), base_amount: expect.any(String), gas_asset: 'eth' };
  expect(await quote(await makeWallet(100_000_000n), body)).toEqual({ ...shown, estimated_gas: gas });
  const exact = { ...body, base_amount: '99880000', amount_type: 'exact_output' };
  expect(await quote(wallet, exact)).toMatchObject({
    ...{ input_amount: '100000000', est_output_amount: '99880000', minimum_output_amount: '99880000' },
  });
});
