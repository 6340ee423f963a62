import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { transfersIn } from './transfers-in.ts';

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const nonce = 'treasury-2025-11-21-000042';
const ether = 10n ** 18n;
const pay = (amount: string, extra: object = {}) => ({
  source: { asset: 'usdc', chain: 'base', amount },
  destination: { address: receiver },
  ...extra,
});

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

const { transfer, actionOf, wait, holds, eventsOf, ...transfers } = transfersIn(() => sandbox);
const makeWallet = (extra?: object) => transfers.makeWallet(10_000_000n, extra);
const refused = (wallet: Wallet, body: object, options?: CallOptions) =>
  transfers.refused('transferFromWallet', wallet, body, options);

test('a token transfer is pending, reaches the chain, succeeds, and records its events', async () => {
  const wallet = await makeWallet();
  const begun = await transfer(wallet, pay('1.50', { nonce, reference_id: 'invoice-2041' }));
  const at = new Date(sandbox.clock.now()).toISOString();
  expect(begun).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    type: 'transfer',
    wallet_id: wallet.id,
    status: 'pending',
    created_at: at,
    reference_id: 'invoice-2041',
    source_asset: 'usdc',
    source_chain: 'base',
    source_amount: '1.5',
    destination_address: receiver,
    destination_amount: null,
    amount_type: 'exact_input',
    estimated_gas: {
      amount: expect.any(String),
      base_amount: expect.stringMatching(/^\d+$/),
      gas_asset: 'eth',
    },
    estimated_fees: [],
    gas: null,
    fees: null,
  });
  const sent = await actionOf(begun, 'steps');
  expect(sent).toEqual({
    ...begun,
    steps: [
      {
        type: 'evm_transaction',
        caip2: 'eip155:8453',
        status: 'pending',
        transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        finalized: false,
      },
    ],
  });
  expect(await holds(receiver, 'base', usdcOnBase)).toEqual([0n]);

  await wait(10);
  const done = await actionOf(begun, 'steps');
  const gasPaid = ether - ((await holds(wallet.address, 'base', null))?.[0] ?? 0n);
  const { steps, ...shown } = done;
  expect(shown).toEqual({
    ...begun,
    status: 'succeeded',
    destination_amount: '1.5',
    fees: [],
    gas: { amount: expect.any(String), base_amount: gasPaid.toString(), gas_asset: 'eth' },
  });
  expect(gasPaid <= BigInt(begun.estimated_gas?.base_amount ?? 0)).toBe(true);
  expect(steps).toMatchObject([{ status: 'confirmed', finalized: false }]);
  expect(await holds(receiver, 'base', usdcOnBase)).toEqual([1_500_000n]);
  expect(await holds(wallet.address, 'base', usdcOnBase)).toEqual([8_500_000n]);

  const reported = {
    wallet_action_id: begun.id,
    wallet_id: wallet.id,
    action_type: 'transfer',
    reference_id: 'invoice-2041',
    created_at: at,
    source_asset: 'usdc',
    source_chain: 'base',
    source_amount: '1.5',
    destination_address: receiver,
  };
  expect(await eventsOf(begun.id)).toEqual([
    { type: 'wallet_action.transfer.created', ...reported, status: 'pending' },
    {
      type: 'wallet_action.transfer.succeeded',
      ...reported,
      status: 'succeeded',
      // In the next block of Base.
      completed_at: new Date(Date.parse(at) + 2_000).toISOString(),
      steps,
    },
  ]);
  await wait(600);
  expect((await actionOf(begun, 'steps')).steps).toMatchObject([{ status: 'confirmed', finalized: true }]);
  expect(await eventsOf(begun.id)).toHaveLength(2);
});

test('the native asset moves to the last wei', async () => {
  const wallet = await makeWallet();
  const begun = await transfer(wallet, {
    source: { asset: 'eth', chain: 'base' },
    amount: '0.000000000000000001',
    destination: { address: receiver.toLowerCase() },
    amount_type: 'exact_output',
  });
  await wait(10);
  expect(await actionOf(begun)).toMatchObject({
    status: 'succeeded',
    source_amount: '0.000000000000000001',
    destination_amount: '0.000000000000000001',
    destination_address: receiver.toLowerCase(),
    amount_type: 'exact_output',
  });
  expect(await holds(receiver, 'base', null)).toEqual([1n]);
});

test('a token can be given by its address', async () => {
  const wallet = await makeWallet();
  const begun = await transfer(wallet, {
    source: { asset_address: usdcOnBase.toLowerCase(), chain: 'base', amount: '2' },
    destination: { address: receiver },
  });
  expect(begun).toMatchObject({
    source_asset_address: usdcOnBase,
    source_asset_decimals: 6,
    source_amount: '2',
  });
  expect(begun).not.toHaveProperty('source_asset');
  await wait(10);
  expect(await actionOf(begun)).toMatchObject({ status: 'succeeded' });
  expect(await holds(receiver, 'base', usdcOnBase)).toEqual([2_000_000n]);
});

test("on Solana lamports and tokens move, and the recipient's token account is created", async () => {
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  const { body: other } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  await fund(sandbox, wallet.address, { chain: 'solana', asset: 'sol', rawAmount: 1_000_000_000n });
  await fund(sandbox, wallet.address, { chain: 'solana', asset: 'usdc', rawAmount: 5_000_000n });
  const destination = { address: other.address };
  const lamports = await transfer(wallet, {
    source: { asset: 'sol', chain: 'solana', amount: '0.25' },
    destination,
  });
  const tokens = await transfer(wallet, {
    source: { asset: 'usdc', chain: 'solana', amount: '1.000001' },
    destination,
  });
  expect(lamports.estimated_gas).toEqual({ amount: '0.000005', base_amount: '5000', gas_asset: 'sol' });
  await wait(10);
  const done = await actionOf(tokens, 'steps');
  expect(done).toMatchObject({
    status: 'succeeded',
    steps: [
      {
        type: 'svm_transaction',
        status: 'confirmed',
        transaction_signature: expect.stringMatching(/^\w{64,}$/),
      },
    ],
  });
  expect((await actionOf(lamports)).status).toBe('succeeded');
  const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
  expect(await holds(other.address, 'solana', null, mint)).toEqual([250_000_000n, 1_000_001n]);
});

test('on Tron TRX and tokens move', async () => {
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'tron' } });
  const { body: other } = await call(sandbox, 'createWallet', { body: { chain_type: 'tron' } });
  await fund(sandbox, wallet.address, { chain: 'tron', asset: 'trx', rawAmount: 500_000_000n });
  await fund(sandbox, wallet.address, { chain: 'tron', asset: 'usdt', rawAmount: 5_000_000n });
  const destination = { address: other.address };
  const sun = await transfer(wallet, {
    source: { asset: 'trx', chain: 'tron', amount: '0.25' },
    destination,
  });
  const tokens = await transfer(wallet, {
    source: { asset: 'usdt', chain: 'tron', amount: '1.000001' },
    destination,
  });
  await wait(10);
  const done = await actionOf(tokens, 'steps');
  expect(done).toMatchObject({
    status: 'succeeded',
    steps: [
      {
        type: 'tvm_transaction',
        caip2: 'tron:0x2b6653dc',
        status: 'confirmed',
        transaction_id: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ],
  });
  const paid = await actionOf(sun);
  expect(paid.status).toBe('succeeded');
  for (const { gas, estimated_gas: estimated } of [done, paid]) {
    const share = Number(estimated?.base_amount) / Number(gas?.base_amount);
    expect(share).toBeGreaterThanOrEqual(1);
    expect(share).toBeLessThan(1.05);
  }
  const usdt = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
  expect(await holds(other.address, 'tron', null, usdt)).toEqual([250_000n, 1_000_001n]);
  const fees = BigInt(done.gas?.base_amount ?? 0) + BigInt(paid.gas?.base_amount ?? 0);
  expect(await holds(wallet.address, 'tron', null, usdt)).toEqual([499_750_000n - fees, 3_999_999n]);
  const least = { asset: 'trx', chain: 'tron' };
  expect(await refused(wallet, { source: { ...least, amount: '9007199255' }, destination })).toMatchObject({
    code: 'insufficient_funds',
  });
});

describe('failures', () => {
  // Sentinel recipients determine the outcome on the simulated chain.
  const revertsAt = '0x00000000000000000000000000000000dead0003';
  const replacedAt = '0x00000000000000000000000000000000dead0002';

  test('a reverted transfer fails once a reorganization can no longer undo the revert', async () => {
    const wallet = await makeWallet();
    const begun = await transfer(wallet, {
      source: { asset: 'eth', chain: 'base', amount: '0.1' },
      destination: { address: revertsAt },
    });
    await wait(10);
    expect(await actionOf(begun, 'steps')).toMatchObject({
      status: 'pending',
      steps: [{ status: 'reverted' }],
    });
    await wait(600);
    const failed = await actionOf(begun, 'steps');
    expect(failed).toMatchObject({
      status: 'failed',
      destination_amount: null,
      fees: null,
      gas: { gas_asset: 'eth' },
      failure_reason: { message: expect.any(String) },
      steps: [{ status: 'reverted', failure_reason: { message: expect.any(String) } }],
    });
    expect((await eventsOf(begun.id)).map(({ type }) => type)).toEqual([
      'wallet_action.transfer.created',
      'wallet_action.transfer.failed',
    ]);
    expect(await holds(revertsAt, 'base', null)).toEqual([0n]);
  });

  test('a transfer whose nonce was used by another transaction fails', async () => {
    const wallet = await makeWallet();
    const begun = await transfer(wallet, {
      source: { asset: 'eth', chain: 'base', amount: '0.1' },
      destination: { address: replacedAt },
    });
    await wait(600);
    expect(await actionOf(begun, 'steps')).toMatchObject({
      status: 'failed',
      steps: [{ status: 'replaced' }],
    });
  });

  test('a low balance and missing gas are refused immediately', async () => {
    const wallet = await makeWallet();
    const poor = { status: 400, code: 'insufficient_funds' };
    expect(await refused(wallet, pay('10.000001'))).toMatchObject(poor);
    expect(await refused(wallet, pay('9'.repeat(100)))).toMatchObject(poor);
    const { body: gasless } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await fund(sandbox, gasless.address, { chain: 'base', asset: 'usdc', rawAmount: 10_000_000n });
    expect(await refused(gasless, pay('1'))).toMatchObject(poor);
    const { body } = await call(sandbox, 'listWalletActions', { path: { wallet_id: wallet.id } });
    expect(body).toEqual({ data: [], next_cursor: null });
  });
});

describe('authorization', () => {
  test('only the owner or an additional signer can sign', async () => {
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [bobKey.publicKey] },
    });
    const wallet = await makeWallet({
      owner: { public_key: aliceKey.publicKey },
      additional_signers: [{ signer_id: quorum.id }],
    });
    expect(await refused(wallet, pay('1'))).toMatchObject({
      status: 401,
      code: 'missing_or_empty_authorization_header',
    });
    await transfer(wallet, pay('1'), { signWith: [aliceKey.privateKey] });
    await transfer(wallet, pay('2'), { signWith: [bobKey.privateKey] });
    await wait(10);
    expect(await holds(receiver, 'base', usdcOnBase)).toEqual([3_000_000n]);
  });

  async function makePolicy(
    conditions: readonly object[],
    action: 'ALLOW' | 'DENY' = 'ALLOW',
  ): Promise<string> {
    const rule = { name: 'Transfers', method: 'transfer', action, conditions };
    const anything = {
      name: 'Anything',
      method: '*',
      action: 'ALLOW',
      conditions: [{ field_source: 'system', field: 'current_unix_timestamp', operator: 'gt', value: '0' }],
    };
    const { body } = await call(sandbox, 'createPolicy', {
      body: {
        version: '1.0',
        name: 'Transfers',
        chain_type: 'ethereum',
        rules: (action === 'ALLOW' ? [rule] : [rule, anything]) as never,
      },
    });
    return body.id;
  }
  const condition = (field: string, operator: string, value: string) => ({
    field_source: 'action_request_body',
    field,
    operator,
    value,
  });
  const denied = { status: 400, code: 'policy_violation' };

  test('the policy evaluates the body in any spelling', async () => {
    const policy = await makePolicy([
      condition('source.asset', 'eq', 'usdc'),
      condition('source.amount', 'lte', '2'),
      condition('destination.chain', 'eq', 'base'),
    ]);
    const wallet = await makeWallet({ policy_ids: [policy] });
    const byAddress = { asset_address: usdcOnBase, chain: 'base' };
    await transfer(wallet, pay('2.0'));
    await transfer(wallet, { ...pay('1'), source: byAddress, amount: '1' });
    expect(await refused(wallet, pay('2.000001'))).toMatchObject(denied);
    expect(await refused(wallet, { ...pay('3'), source: byAddress, amount: '3' })).toMatchObject(denied);
    const eth = {
      source: { asset: 'eth', chain: 'base', amount: '0.1' },
      destination: { address: receiver },
    };
    expect(await refused(wallet, eth)).toMatchObject(denied);
    await wait(10);
    expect(await holds(receiver, 'base', null, usdcOnBase)).toEqual([0n, 3_000_000n]);
  });

  test('a denial applies to every spelling of the same transfer', async () => {
    const wallet = await makeWallet({
      policy_ids: [await makePolicy([condition('source.asset', 'eq', 'usdc')], 'DENY')],
    });
    const byAddress = { asset_address: usdcOnBase.toLowerCase(), chain: 'base' };
    expect(await refused(wallet, pay('1'))).toMatchObject(denied);
    expect(await refused(wallet, { ...pay('1'), source: byAddress, amount: '1' })).toMatchObject(denied);
    const large = await makeWallet({
      policy_ids: [await makePolicy([condition('source.amount', 'gt', '2')], 'DENY')],
    });
    expect(await refused(large, pay('3'))).toMatchObject(denied);
    const apart = { ...pay('1'), source: { asset: 'usdc', chain: 'base' }, amount: '3' };
    expect(await refused(large, apart)).toMatchObject(denied);
    await transfer(large, { ...apart, amount: '2' });
  });

  test('a rule for transactions does not apply to transfers', async () => {
    const { body } = await call(sandbox, 'createPolicy', {
      body: {
        version: '1.0',
        name: 'Transactions',
        chain_type: 'ethereum',
        rules: [
          {
            name: 'All',
            method: 'eth_sendTransaction',
            action: 'ALLOW',
            conditions: [
              { field_source: 'ethereum_transaction', field: 'value', operator: 'gte', value: '0' },
            ],
          },
        ],
      },
    });
    expect(await refused(await makeWallet({ policy_ids: [body.id] }), pay('1'))).toMatchObject(denied);
  });
});

test('a nonce can be used once per wallet', async () => {
  const wallet = await makeWallet();
  await transfer(wallet, pay('1', { nonce }));
  const seen = { status: 409, code: 'resource_conflict', error: '/nonce: the wallet has seen this nonce' };
  expect(await refused(wallet, pay('1', { nonce }))).toEqual(seen);
  // Also for another transfer, and for one that could not be paid.
  expect(await refused(wallet, pay('1000', { nonce }))).toEqual(seen);
  await transfer(await makeWallet(), pay('1', { nonce }));
  await wait(10);
  expect(await holds(receiver, 'base', usdcOnBase)).toEqual([2_000_000n]);
});

test('the nonce of a refused transfer stays free', async () => {
  const wallet = await makeWallet();
  expect(await refused(wallet, pay('11', { nonce }))).toMatchObject({ code: 'insufficient_funds' });
  await transfer(wallet, pay('1', { nonce }));
});

test('a replay under an idempotency key moves the funds once', async () => {
  const wallet = await makeWallet();
  const first = await transfer(wallet, pay('1'), { idempotencyKey: 'pay-1' });
  expect(await transfer(wallet, pay('1'), { idempotencyKey: 'pay-1' })).toEqual(first);
  await wait(10);
  expect(await holds(receiver, 'base', usdcOnBase)).toEqual([1_000_000n]);
});

const base = { asset: 'usdc', chain: 'base' };
test.each([
  ['no amount', { source: base }, 'invalid_data', '/amount: expected `amount` here or in `source`'],
  [
    'two amounts',
    { amount: '1' },
    'invalid_data',
    '/amount: expected `amount` here or in `source`, not both',
  ],
  [
    'nothing',
    { source: { ...base, amount: '0.000' } },
    'invalid_data',
    '/source/amount: expected a decimal number above 0',
  ],
  [
    'too fine an amount',
    { source: { ...base, amount: '0.0000001' } },
    'invalid_data',
    '/source/amount: `usdc` has 6 decimals at most',
  ],
  [
    'no address',
    { destination: { address: 'bob.eth' } },
    'invalid_data',
    '/destination/address: expected an address on `base`',
  ],
  [
    'a Solana address',
    { destination: { address: 'HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk' } },
    'invalid_data',
    '/destination/address: expected an address on `base`',
  ],
  [
    'no token address',
    { source: { chain: 'base', asset_address: '0x12', amount: '1' } },
    'invalid_data',
    '/source/asset_address: expected the address of a token on `base`',
  ],
  [
    'no token',
    { source: { chain: 'base', asset_address: receiver, amount: '1' } },
    'not_supported',
    `no readable token at \`${receiver}\` on \`base\``,
  ],
  [
    'an unknown asset',
    { source: { ...base, asset: 'doge', amount: '1' } },
    'not_supported',
    '/source/asset: no asset `doge` is known on `base`',
  ],
  [
    'an unknown chain',
    { source: { ...base, chain: 'nowhere', amount: '1' } },
    'not_supported',
    '/source/chain: the chain `nowhere` is not supported',
  ],
  [
    'a chain of another type',
    { source: { asset: 'sol', chain: 'solana', amount: '1' } },
    'not_supported',
    '/source/chain: `solana` is not a chain of ethereum wallets',
  ],
  [
    'a fee',
    { fee_configuration: { type: 'total_fee_bps', value: 1 } },
    'not_supported',
    '/fee_configuration: no fee is taken from a plain transfer',
  ],
  ['a nonce with U+0000', { nonce: `${nonce}\0` }, 'invalid_data', '/nonce: must not contain U+0000'],
  [
    'a reference with U+0000',
    { reference_id: 'a\0b' },
    'invalid_data',
    '/reference_id: must not contain U+0000',
  ],
  [
    'words for a custodian',
    {
      custody_options: {
        initiation: { channel: 'other', subchannel: 'x', attestations: { sca: { outcome: 'sca_used' } } },
      },
    },
    'invalid_data',
    '/custody_options: expected none: no custodian holds this wallet',
  ],
])('%s is refused', async (_, change, code, error) => {
  const wallet = await makeWallet();
  expect(await refused(wallet, { ...pay('1'), ...change })).toEqual({ status: 400, code, error });
});

test('a destination that repeats the defaults changes nothing', async () => {
  const wallet = await makeWallet();
  const begun = await transfer(wallet, {
    ...pay('1'),
    destination: { address: receiver, chain: 'base', asset: 'usdc' },
    slippage_bps: 50,
    fee_configuration: { type: 'total_fee_bps', value: 0 },
  });
  expect(begun).not.toHaveProperty('destination_chain');
});

test('a wallet that is absent, archived, custodial or of another app cannot transfer', async () => {
  const wallet = await makeWallet();
  const { body: custodial } = await call(sandbox, 'createCustodialWallet', {
    body: { provider: 'bridge', provider_user_id: 'cust_1', chain: 'base' },
  });
  expect(await refused(custodial as unknown as Wallet, pay('1'))).toMatchObject({
    status: 400,
    code: 'not_supported',
  });
  const absent = { status: 404, body: { error: 'Wallet not found' } };
  const path = { wallet_id: wallet.id };
  const other = await asOtherApp(sandbox);
  expect(await refusal(other, 'transferFromWallet', { path, body: pay('1') })).toEqual(absent);
  expect(await refusal(other, 'listWalletActions', { path })).toEqual(absent);
  await call(sandbox, 'archiveWallet', { path });
  expect(await refusal(sandbox, 'transferFromWallet', { path, body: pay('1') })).toEqual(absent);
});
