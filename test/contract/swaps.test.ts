import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import type { SwapActionResponse, Wallet } from '../../src/generated/schemas.ts';
import { call } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import {
  arbitrum,
  base,
  ether,
  eurc,
  receiver,
  solana,
  swapBody,
  swapsIn,
  usdc,
  usdcOnArbitrum,
  usdcOnSolana,
  weth,
} from '../support/wallet-actions/swaps.ts';

describe('quoteWalletSwap', () => {
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
    const { est_output_amount: expected, ...shown } = await quote(
      wallet,
      swapBody(usdc, 'native', 1_500_000n),
    );
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
          expect(bought).toMatchObject({
            est_output_amount: String(out),
            minimum_output_amount: String(out),
          });
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
});

describe('executeWalletSwap', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());
  beforeEach(() => sandbox.reset());

  const { swap, quote, refused, actionOf, wait, holds, eventsOf, ...swaps } = swapsIn(() => sandbox);
  const makeWallet = (extra?: object) => swaps.makeWallet(1_000_000_000n, extra);
  const usdcToEth = (amount: bigint, extra?: object) => swapBody(usdc, 'native', amount, extra);

  /** The action after its transactions are final. */
  async function ended(begun: SwapActionResponse): Promise<SwapActionResponse> {
    await wait(10);
    await wait(600);
    return actionOf(begun);
  }

  const gasOf = ({ gas }: SwapActionResponse): bigint => BigInt(gas?.base_amount ?? 0);

  describe('on one chain', () => {
    test('tokens become the native asset: an exact approval and the swap', async () => {
      const wallet = await makeWallet();
      const quoted = await quote(wallet, usdcToEth(300_000_000n));
      const begun = await swap(wallet, usdcToEth(300_000_000n, { reference_id: 'invoice-7' }));
      const at = new Date(sandbox.clock.now()).toISOString();
      const shown = { caip2: base, input_token: usdc, output_token: 'native', reference_id: 'invoice-7' };
      const gas = { amount: expect.any(String), base_amount: expect.any(String), gas_asset: 'eth' };
      expect(begun).toEqual({
        ...{ id: expect.any(String), type: 'swap', wallet_id: wallet.id, status: 'pending', created_at: at },
        ...shown,
        ...{ input_amount: null, output_amount: null, estimated_fees: null, fees: null, gas: null },
        estimated_gas: gas,
      });
      await wait(10);
      const done = await actionOf(begun);
      expect(done).toMatchObject({
        ...{ status: 'succeeded', input_amount: '300000000', output_amount: quoted.est_output_amount },
        ...{ fees: null, gas },
        steps: [
          { type: 'evm_transaction', caip2: base, status: 'confirmed' },
          { type: 'evm_transaction', caip2: base, status: 'confirmed' },
        ],
      });
      // What the wallet holds is exactly what the action says.
      expect(await holds(wallet.address, null, usdc)).toEqual([
        ether + BigInt(done.output_amount ?? 0) - gasOf(done),
        700_000_000n,
      ]);
      const reported = { ...shown, wallet_action_id: begun.id, wallet_id: wallet.id, action_type: 'swap' };
      expect(await eventsOf(begun.id)).toEqual([
        {
          ...{ type: 'wallet_action.swap.created', ...reported, created_at: at, status: 'pending' },
          input_amount: null,
        },
        {
          ...{ type: 'wallet_action.swap.succeeded', ...reported, created_at: at, status: 'succeeded' },
          ...{ input_amount: done.input_amount, output_amount: done.output_amount },
          // In the next block of Base.
          ...{ steps: done.steps, completed_at: new Date(Date.parse(at) + 2_000).toISOString() },
        },
      ]);
    });

    test('an exact output costs what the pool asks for; the rest comes back', async () => {
      const wallet = await makeWallet();
      const body = swapBody('native', usdc, 500_000_000n, { amount_type: 'exact_output', slippage_bps: 300 });
      const done = await ended(await swap(wallet, body));
      expect(done).toMatchObject({ status: 'succeeded', output_amount: '500000000' });
      const spent = BigInt(done.input_amount ?? 0);
      expect(await holds(wallet.address, null, usdc)).toEqual([ether - spent - gasOf(done), 1_500_000_000n]);
      // $500 of $1,000,000 at 0.3 %: between 0.3 and 0.4 percent above the price of 3000.
      expect(Number(spent) / 1e18).toBeGreaterThan((500 / 3000) * 1.003);
      expect(Number(spent) / 1e18).toBeLessThan((500 / 3000) * 1.004);
    });

    test('the proceeds go to another address', async () => {
      const wallet = await makeWallet();
      const to = { asset_address: eurc, destination_address: receiver };
      const done = await ended(await swap(wallet, { ...usdcToEth(1_000_000n), destination: to }));
      expect(done).toMatchObject({ status: 'succeeded', destination_address: receiver });
      expect(await holds(receiver, eurc)).toEqual([BigInt(done.output_amount ?? 0)]);
      const native = { asset_address: 'native', destination_address: receiver };
      const paid = await ended(await swap(wallet, { ...usdcToEth(1_000_000n), destination: native }));
      expect(await holds(receiver, null)).toEqual([BigInt(paid.output_amount ?? 0)]);
    });

    test('an allowance that is there is used, or set to zero before another one', async () => {
      const wallet = await makeWallet();
      const exact = (amount: bigint) =>
        swapBody(usdc, eurc, amount, { amount_type: 'exact_output', slippage_bps: 1000 });
      // What an exact output does not need of its approval stays.
      const first = await ended(await swap(wallet, exact(100_000_000n)));
      expect(first.steps).toHaveLength(2);
      const within = await ended(await swap(wallet, swapBody(usdc, eurc, 1_000_000n)));
      expect(within).toMatchObject({ status: 'succeeded', steps: [{ status: 'confirmed' }] });
      const beyond = await ended(await swap(wallet, swapBody(usdc, eurc, 100_000_000n)));
      expect(beyond).toMatchObject({ status: 'succeeded', input_amount: '100000000' });
      expect(beyond.steps).toHaveLength(3);
      const again = await ended(await swap(wallet, swapBody(usdc, eurc, 1_000_000n)));
      expect(again.steps).toHaveLength(2);
    });

    test('swaps that are started within one block do not take the allowance of one another', async () => {
      const wallet = await makeWallet();
      const exact = swapBody(usdc, eurc, 100_000_000n, { amount_type: 'exact_output', slippage_bps: 1000 });
      // Leaves an allowance that would suffice for the second swap, and not for both.
      await ended(await swap(wallet, exact));
      const begun = [
        await swap(wallet, swapBody(usdc, eurc, 5_000_000n)),
        await swap(wallet, swapBody(usdc, eurc, 5_000_000n)),
      ];
      await wait(10);
      for (const each of begun) {
        expect(await actionOf(each)).toMatchObject({ status: 'succeeded', input_amount: '5000000' });
      }
    });

    test('the native asset is wrapped and unwrapped one to one', async () => {
      const wallet = await makeWallet();
      const wrapped = await ended(await swap(wallet, swapBody('native', weth, 5n * 10n ** 17n)));
      expect(wrapped).toMatchObject({
        input_amount: '500000000000000000',
        output_amount: '500000000000000000',
      });
      const part = await ended(await swap(wallet, swapBody(weth, 'native', 2n * 10n ** 17n)));
      expect(part).toMatchObject({ status: 'succeeded', output_amount: '200000000000000000' });
      const sent = { asset_address: weth, destination_address: receiver };
      const onward = await ended(
        await swap(wallet, { ...swapBody('native', weth, 1000n), destination: sent }),
      );
      expect(onward).toMatchObject({ status: 'succeeded', input_amount: '1000', output_amount: '1000' });
      expect(await holds(receiver, weth)).toEqual([1000n]);
      const gas = gasOf(wrapped) + gasOf(part) + gasOf(onward);
      expect(await holds(wallet.address, null, weth)).toEqual([
        7n * 10n ** 17n - 1000n - gas,
        3n * 10n ** 17n,
      ]);
      expect(
        await refused('executeWalletSwap', wallet, {
          ...swapBody(weth, 'native', 1n),
          destination: { asset_address: 'native', destination_address: receiver },
        }),
      ).toMatchObject({ code: 'not_supported', error: expect.stringMatching(/^\/destination/) });
    });

    test('an account that delegates to the batch executor swaps in one transaction', async () => {
      const wallet = await makeWallet();
      await call(sandbox, 'walletRpc', {
        path: { wallet_id: wallet.id },
        body: {
          method: 'wallet_sendCalls',
          caip2: base,
          params: { calls: [{ to: receiver, value: '0x1' }] },
        },
      });
      await wait(10);
      const done = await ended(await swap(wallet, usdcToEth(1_000_000n)));
      expect(done).toMatchObject({
        status: 'succeeded',
        input_amount: '1000000',
        steps: [{ status: 'confirmed' }],
      });
    });
  });

  describe('slippage', () => {
    test('a price that moves before the block reverts the swap: it costs gas, and leaves the approval', async () => {
      const [whale, wallet] = [await swaps.makeWallet(300_000_000_000n), await makeWallet()];
      const moving = await swap(whale, usdcToEth(200_000_000_000n));
      const begun = await swap(wallet, usdcToEth(100_000_000n));
      const done = await ended(begun);
      expect((await actionOf(moving)).status).toBe('succeeded');
      expect(done).toMatchObject({
        ...{ status: 'failed', input_amount: null, output_amount: null },
        failure_reason: {
          message: expect.stringContaining('INSUFFICIENT_OUTPUT_AMOUNT'),
          details: {
            allowance: { token_address: usdc, raw_amount: '100000000', spender: expect.any(String) },
          },
        },
        steps: [{ status: 'confirmed' }, { status: 'reverted' }],
      });
      expect(await holds(wallet.address, null, usdc)).toEqual([ether - gasOf(done), 1_000_000_000n]);
      const events = await eventsOf(begun.id);
      expect(events.map(({ type }) => type)).toEqual([
        'wallet_action.swap.created',
        'wallet_action.swap.failed',
      ]);
      expect(events[1]).not.toHaveProperty('output_amount');
    });

    test('within a wide slippage it goes through, at the worse price', async () => {
      const [whale, wallet] = [await swaps.makeWallet(300_000_000_000n), await makeWallet()];
      await swap(whale, usdcToEth(200_000_000_000n));
      const body = usdcToEth(100_000_000n, { slippage_bps: 5000 });
      const { est_output_amount: expected } = await quote(wallet, body);
      const done = await ended(await swap(wallet, body));
      expect(done.status).toBe('succeeded');
      expect(BigInt(done.output_amount ?? 0)).toBeLessThan(BigInt(expected));
    });

    test('an exact output that would cost more than its maximum reverts, too', async () => {
      const [whale, wallet] = [await swaps.makeWallet(300_000_000_000n), await makeWallet()];
      await swap(whale, usdcToEth(200_000_000_000n));
      const body = swapBody(usdc, 'native', 10n ** 16n, { amount_type: 'exact_output' });
      const done = await ended(await swap(wallet, body));
      expect(done).toMatchObject({
        status: 'failed',
        failure_reason: { message: expect.stringContaining('EXCESSIVE_INPUT_AMOUNT') },
      });
    });
  });

  test('without gas for the block nothing is swapped, and the action is rejected', async () => {
    const wallet = await makeWallet();
    const [held = 0n] = await holds(wallet.address, null);
    // The transfer leaves too little for what follows it in the same block.
    await call(sandbox, 'transferFromWallet', {
      path: { wallet_id: wallet.id },
      body: {
        source: {
          ...{ asset: 'eth', chain: 'base' },
          amount: `0.${String(held - 3n * 10n ** 12n).padStart(18, '0')}`,
        },
        destination: { address: receiver },
      },
    });
    const begun = await swap(wallet, usdcToEth(1_000_000n));
    expect(await ended(begun)).toMatchObject({
      ...{ status: 'rejected', input_amount: null, output_amount: null },
      failure_reason: { message: expect.any(String) },
    });
    expect((await eventsOf(begun.id)).map(({ type }) => type)).toEqual([
      'wallet_action.swap.created',
      'wallet_action.swap.rejected',
    ]);
    expect(await holds(wallet.address, usdc)).toEqual([1_000_000_000n]);
  });

  describe('by the exchange', () => {
    const across = (amount: bigint, extra: object = {}) => ({
      ...usdcToEth(amount),
      destination: { asset_address: usdcOnArbitrum, caip2: arbitrum },
      ...extra,
    });

    test('a swap to another chain pays its deposit, and its fee is recorded once', async () => {
      const wallet = await makeWallet();
      const begun = await swap(wallet, across(100_000_000n));
      expect(begun).toMatchObject({
        ...{ destination_caip2: arbitrum, input_amount: null, output_amount: null },
        estimated_fees: [{ type: 'relayer', amount: '0.12' }],
      });
      for (const _ of [1, 2, 3]) await wait(10);
      expect(await actionOf(begun)).toMatchObject({
        ...{ status: 'succeeded', input_amount: '100000000', output_amount: '99880000' },
        fees: [{ type: 'relayer', amount: '0.12' }],
        steps: [
          { type: 'evm_transaction', status: 'confirmed' },
          { type: 'external_transaction', caip2: arbitrum, status: 'confirmed' },
        ],
      });
      await wait(600);
      const fees = (await eventsOf(begun.id)).filter(({ type }) => String(type).startsWith('usage.'));
      expect(fees).toEqual([
        {
          ...{ type: 'usage.swap_provider_fee.recorded', event_id: expect.any(String), amount_usd: '0.12' },
          ...{ recorded_at: expect.any(Number), source_type: 'wallet-action-swap', source_id: begun.id },
        },
      ]);
    });

    test('the fee of a transfer across chains is recorded as well', async () => {
      const wallet = await makeWallet();
      const { body: begun } = await call(sandbox, 'transferFromWallet', {
        path: { wallet_id: wallet.id },
        body: {
          source: { asset: 'usdc', chain: 'base', amount: '100' },
          destination: { address: receiver, chain: 'arbitrum' },
        },
      });
      for (const _ of [1, 2, 3]) await wait(10);
      expect((await eventsOf(begun.id)).at(-1)).toMatchObject({
        ...{ type: 'usage.swap_provider_fee.recorded', source_type: 'wallet-action-transfer' },
        amount_usd: '0.12',
      });
    });

    test('it also swaps on one chain when the app takes a fee, and to another chain type', async () => {
      const wallet = await makeWallet();
      const fee_configuration = { type: 'total_fee_bps', value: 100 };
      const begun = await swap(wallet, usdcToEth(100_000_000n, { fee_configuration }));
      expect(begun).toMatchObject({
        estimated_fees: [
          { type: 'relayer', amount: '0.12' },
          { type: 'developer', amount: '1' },
        ],
      });
      const { body: other } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
      const there = { asset_address: usdcOnSolana, caip2: solana, destination_address: other.address };
      const far = await swap(wallet, across(10_000_000n, { destination: there }));
      for (const _ of [1, 2, 3]) await wait(10);
      expect((await actionOf(begun)).status).toBe('succeeded');
      expect(await actionOf(far)).toMatchObject({ status: 'succeeded', output_amount: '9988000' });
      expect(await sandbox.chains.find(solana)!.balances(other.address, [usdcOnSolana])).toEqual([
        9_988_000n,
      ]);
    });

    test('a deposit that is given back fails the swap, with the refund', async () => {
      const wallet = await makeWallet();
      const destination_address = '0x00000000000000000000000000000000dead0003';
      const begun = await swap(
        wallet,
        across(100_000_000n, {
          destination: { asset_address: usdcOnArbitrum, caip2: arbitrum, destination_address },
        }),
      );
      for (const _ of [1, 2, 3]) await wait(10);
      expect(await actionOf(begun)).toMatchObject({
        ...{ status: 'failed', input_amount: null, output_amount: null },
        failure_reason: {
          details: { refund: { caip2: base, transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) } },
        },
      });
      expect(await holds(wallet.address, usdc)).toEqual([1_000_000_000n]);
    });
  });

  describe('authorization', () => {
    test('only the owner or an additional signer can sign', async () => {
      const wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
      expect(await refused('executeWalletSwap', wallet, usdcToEth(1_000_000n))).toMatchObject({
        status: 401,
      });
      expect(
        await refused('executeWalletSwap', wallet, usdcToEth(1_000_000n), { signWith: [bobKey.privateKey] }),
      ).toMatchObject({ status: 401, code: 'zero_correct_authorization_signatures' });
      await swap(wallet, usdcToEth(1_000_000n), { signWith: [aliceKey.privateKey] });
    });

    const condition = (field: string, operator: string, value: string) => ({
      ...{ field_source: 'action_request_body', field, operator, value },
    });
    async function walletUnder(...conditions: object[]): Promise<Wallet> {
      const rule = { name: 'Swaps', method: '*', action: 'ALLOW', conditions };
      const { body } = await call(sandbox, 'createPolicy', {
        body: { version: '1.0', name: 'Swaps', chain_type: 'ethereum', rules: [rule] as never },
      });
      return makeWallet({ policy_ids: [body.id] });
    }
    const denied = { status: 400, code: 'policy_violation' };

    test.each([
      ['source.asset', 'eq', 'usdc'],
      ['source.asset_address', 'eq', usdc],
      ['source.chain', 'eq', 'base'],
      ['source.amount', 'lte', '2'],
      ['amount', 'lte', '2'],
      ['raw_amount', 'lte', '2000000'],
      ['destination.asset', 'eq', 'eth'],
      ['destination.chain', 'eq', 'base'],
    ] as const)('a rule on %s judges a swap', async (field, operator, value) => {
      const wallet = await walletUnder(condition(field, operator, value));
      await swap(wallet, usdcToEth(2_000_000n));
      const isAmount = operator === 'lte';
      const other = isAmount ? usdcToEth(2_000_001n) : swapBody(eurc, usdc, 1n);
      const elsewhere = { ...other, destination: { asset_address: usdcOnArbitrum, caip2: arbitrum } };
      expect(
        await refused('executeWalletSwap', wallet, field === 'destination.chain' ? elsewhere : other),
      ).toMatchObject(field === 'source.chain' ? { status: 400 } : denied);
    });

    test('a rule on the recipient sees the wallet when none is given', async () => {
      const wallet = await walletUnder(condition('destination.address', 'eq', receiver));
      const to = (destination_address?: string) => ({
        ...usdcToEth(1_000_000n),
        destination: {
          asset_address: 'native',
          ...(destination_address === undefined ? {} : { destination_address }),
        },
      });
      await swap(wallet, to(receiver));
      expect(await refused('executeWalletSwap', wallet, to())).toMatchObject(denied);
    });

    test('an exact output is judged by the most that it may spend', async () => {
      const wallet = await walletUnder(condition('source.amount', 'lte', '100'));
      const exact = (slippage_bps: number) =>
        swapBody(usdc, eurc, 90_000_000n, { amount_type: 'exact_output', slippage_bps });
      // 90 EURC at 1.1 are 99 USDC, with the fee of the pool 99.31.
      await swap(wallet, exact(10));
      expect(await refused('executeWalletSwap', wallet, exact(100))).toMatchObject(denied);
    });

    test('a policy without a rule for every method denies swaps', async () => {
      const rule = {
        name: 'Transfers',
        method: 'transfer',
        action: 'ALLOW',
        conditions: [condition('amount', 'lte', '9')],
      };
      const { body } = await call(sandbox, 'createPolicy', {
        body: { version: '1.0', name: 'Transfers', chain_type: 'ethereum', rules: [rule] as never },
      });
      const wallet = await makeWallet({ policy_ids: [body.id] });
      expect(await refused('executeWalletSwap', wallet, usdcToEth(1_000_000n))).toMatchObject(denied);
    });
  });

  test('a nonce and an idempotency key prevent a second swap', async () => {
    const wallet = await makeWallet();
    const body = usdcToEth(1_000_000n, { nonce: 'treasury-2025-11-21-000043' });
    const first = await swap(wallet, body, { idempotencyKey: 'swap-1' });
    expect(await swap(wallet, body, { idempotencyKey: 'swap-1' })).toEqual(first);
    expect(await refused('executeWalletSwap', wallet, body)).toEqual({
      ...{ status: 409, code: 'resource_conflict', error: '/nonce: the wallet has seen this nonce' },
    });
    await wait(10);
    expect(await holds(wallet.address, usdc)).toEqual([999_000_000n]);
  });

  test('a sentinel recipient makes the swap fail on chain', async () => {
    const wallet = await makeWallet();
    const destination = {
      asset_address: 'native',
      destination_address: '0x00000000000000000000000000000000dead0003',
    };
    const done = await ended(await swap(wallet, { ...usdcToEth(1_000_000n), destination }));
    expect(done).toMatchObject({
      status: 'failed',
      steps: [{ status: 'confirmed' }, { status: 'reverted' }],
    });
  });
});

describe('swaps that are refused', () => {
  let sandbox: TestSandbox;
  let wallet: Wallet;
  // A refusal changes nothing, so all of them share the wallet.
  beforeAll(async () => {
    sandbox = await startSandbox();
    wallet = await makeWallet(1_000_000_000n);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const { refused, makeWallet } = swapsIn(() => sandbox);
  const fromUsdc = (amount: bigint) => swapBody(usdc, 'native', amount);
  const on = (source: object, destination: object, base_amount = '1000000', extra: object = {}) => ({
    ...{ source, destination, base_amount, ...extra },
  });
  const from = (asset_address: string, caip2 = base) => ({ asset_address, caip2 });
  const invalid = (pointer: string) => ({
    status: 400,
    code: 'invalid_data',
    error: expect.stringContaining(pointer),
  });
  const unsupported = (pointer: string) => ({
    ...{ status: 400, code: 'not_supported', error: expect.stringMatching(new RegExp(`^${pointer}`)) },
  });

  test.each([
    ['a chain of another type', on(from(usdcOnSolana, solana), from(usdc)), unsupported('/source/caip2')],
    ['an unknown chain', on(from(usdc, 'eip155:999999'), from('native')), unsupported('/source/caip2')],
    [
      'native where there is none',
      on(from('native', 'eip155:4217'), from(usdc)),
      unsupported('/source/caip2'),
    ],
    ['no address', on(from('usdc'), from('native')), invalid('/source/asset_address')],
    ['the zero address', on(from(`0x${'0'.repeat(40)}`), from('native')), invalid('/source/asset_address')],
    [
      'the placeholder of other interfaces',
      on(from(`0x${'e'.repeat(40)}`), from(usdc)),
      invalid('/source/asset_address: expected the address of a token or `native`'),
    ],
    ['an invalid destination', on(from(usdc), from('eth')), invalid('/destination/asset_address')],
    ['nothing', on(from(usdc), { asset_address: 'native' }, '0'), invalid('/base_amount')],
    [
      'more than 256 bits',
      on(from(usdc), { asset_address: 'native' }, '9'.repeat(78)),
      invalid('/base_amount'),
    ],
    ['too little for any output', on(from('native'), { asset_address: usdc }, '1'), invalid('/base_amount')],
    [
      'more than there is',
      on(from(usdc), { asset_address: eurc }, '2000000000000', { amount_type: 'exact_output' }),
      invalid('/base_amount'),
    ],
    ['the same asset', on(from(usdc), { asset_address: usdc.toLowerCase() }), unsupported('/destination')],
    [
      'a test network against a main network',
      on(from(usdc), from('native', 'eip155:84532')),
      unsupported('/destination'),
    ],
    ['a token without a pool', on(from(receiver), { asset_address: usdc }), unsupported('/destination')],
    [
      'a token without a name across chains',
      on(from(weth), from(usdcOnArbitrum, arbitrum)),
      unsupported('/source/asset_address'),
    ],
    [
      'another chain type without an address',
      on(from(usdc), from(usdcOnSolana, solana)),
      invalid('/destination/destination_address'),
    ],
    [
      'an address of another chain type',
      on(from(usdc), { ...from(usdcOnSolana, solana), destination_address: receiver }),
      invalid('/destination/destination_address'),
    ],
  ])('%s', async (_, body, expected) => {
    expect(await refused('executeWalletSwap', wallet, body)).toMatchObject(expected);
    expect(await refused('quoteWalletSwap', wallet, body)).toMatchObject(expected);
  });

  test('too little to pay it, or its gas', async () => {
    const poor = { status: 400, code: 'insufficient_funds' };
    expect(await refused('executeWalletSwap', wallet, fromUsdc(1_000_000_001n))).toMatchObject(poor);
    expect(await refused('executeWalletSwap', wallet, swapBody('native', usdc, ether))).toMatchObject(poor);
    const { body: gasless } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await fund(sandbox, gasless.address, { chain: 'base', asset: 'usdc', rawAmount: 10_000_000n });
    expect(await refused('executeWalletSwap', gasless, fromUsdc(1_000_000n))).toMatchObject(poor);
    const exact = swapBody(usdc, eurc, 907_000_000n, { amount_type: 'exact_output', slippage_bps: 100 });
    expect(await refused('executeWalletSwap', wallet, exact)).toMatchObject(poor);
  });

  test('a simulation that fails', async () => {
    // A pair does not pay out to one of its own tokens.
    const destination = { asset_address: eurc, destination_address: usdc };
    expect(
      await refused('executeWalletSwap', wallet, { ...fromUsdc(1_000_000n), destination }),
    ).toMatchObject({ status: 400, code: 'transaction_execution_failure' });
  });

  test('a router and an exchange that cannot be reached: nothing is signed', async () => {
    const { services } = sandbox;
    const { swapRoutes, exchange } = services;
    const down = () => Promise.reject(new Error('connect ECONNREFUSED'));
    Object.assign(services, {
      swapRoutes: { ...swapRoutes, route: down },
      exchange: { ...exchange, quote: down },
    });
    try {
      const unreachable = { status: 400, code: 'transaction_broadcast_failure' };
      const far = { ...fromUsdc(1_000_000n), destination: from(usdcOnArbitrum, arbitrum) };
      for (const body of [fromUsdc(1_000_000n), far]) {
        expect(await refused('executeWalletSwap', wallet, body)).toMatchObject(unreachable);
        expect(await refused('quoteWalletSwap', wallet, body)).toMatchObject(unreachable);
      }
    } finally {
      Object.assign(services, { swapRoutes, exchange });
    }
    const { body } = await call(sandbox, 'listWalletActions', { path: { wallet_id: wallet.id } });
    expect(body.data).toEqual([]);
  });

  test('a wallet that does not exist, or is archived', async () => {
    const absent = { status: 404, error: 'Wallet not found' };
    expect(
      await refused('executeWalletSwap', { id: 'fmfdj6yqly31huorjqzq38zc' }, fromUsdc(1n)),
    ).toMatchObject(absent);
    expect(await refused('quoteWalletSwap', { id: 'fmfdj6yqly31huorjqzq38zc' }, fromUsdc(1n))).toMatchObject(
      absent,
    );
  });
});
