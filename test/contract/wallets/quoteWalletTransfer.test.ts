import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { TransferQuoteResponse, Wallet } from '../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../../support/call.ts';
import { authorize } from '../../support/intents.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { transfersIn } from './transfers-in.ts';

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const usdcOnArbitrum = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831';
const usdcOnSolana = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const ether = 10n ** 18n;
const acrossChains = (amount: string, extra: object = {}) => ({
  source: { asset: 'usdc', chain: 'base', amount },
  destination: { address: receiver, chain: 'arbitrum' },
  ...extra,
});

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

const { transfer, refused, actionOf, wait, holds, eventsOf, ...transfers } = transfersIn(() => sandbox);
const makeWallet = (extra?: object) => transfers.makeWallet(1_000_000_000n, extra);

async function quote(wallet: Wallet, body: object, options?: CallOptions): Promise<TransferQuoteResponse> {
  const path = { wallet_id: wallet.id };
  return (await call(sandbox, 'quoteWalletTransfer', { path, body: body as never }, options)).body;
}

describe('a quote', () => {
  test('for another chain shows the arriving amount, the costs and the expiry', async () => {
    const wallet = await makeWallet();
    const body = acrossChains('100', { slippage_bps: 50 });
    expect(await quote(wallet, body)).toEqual({
      source: body.source,
      destination: body.destination,
      amount_type: 'exact_input',
      estimated_input_amount: '100',
      // The fee of the solver is 0.12 %.
      estimated_output_amount: '99.88',
      estimated_fees: [{ type: 'relayer', amount: '0.12' }],
      estimated_gas: {
        amount: expect.any(String),
        base_amount: expect.stringMatching(/^\d+$/),
        gas_asset: 'eth',
      },
      expires_at: Math.floor(sandbox.clock.now() / 1000) + 600,
    });
    const { body: actions } = await call(sandbox, 'listWalletActions', { path: { wallet_id: wallet.id } });
    expect(actions.data).toEqual([]);
    expect(await holds(wallet.address, 'base', null, usdcOnBase)).toEqual([ether, 1_000_000_000n]);
  });

  test('for another asset uses the fixed prices, to the last wei', async () => {
    const wallet = await makeWallet();
    const body = {
      source: { asset: 'eth', chain: 'base', amount: '0.5' },
      destination: { address: receiver, asset: 'usdc' },
    };
    // 0.5 * 0.9988 * 3000
    expect(await quote(wallet, body)).toMatchObject({
      estimated_output_amount: '1498.2',
      estimated_fees: [{ type: 'relayer', amount: '0.0006' }],
    });
    const least = { ...body, source: { ...body.source, amount: '0.000000000333733815' } };
    expect(await quote(wallet, least)).toMatchObject({ estimated_output_amount: '0.000001' });
  });

  test('a quote for a fixed arriving amount shows the smallest input', async () => {
    const wallet = await makeWallet();
    const exact = (amount: string) => ({
      source: { asset: 'eth', chain: 'base' },
      amount,
      destination: { address: receiver, asset: 'usdc' },
      amount_type: 'exact_output',
    });
    const { estimated_input_amount: input, ...rest } = await quote(wallet, exact('100'));
    expect({ input, ...rest }).toMatchObject({
      input: '0.033373381391002538',
      estimated_output_amount: '100',
      estimated_fees: [{ type: 'relayer', amount: '0.000040048057669204' }],
    });
    const bought = (amount: string) => quote(wallet, { ...exact('0'), amount, amount_type: 'exact_input' });
    expect(await bought(input)).toMatchObject({ estimated_output_amount: '100' });
    expect(await bought('0.033373381391002537')).toMatchObject({ estimated_output_amount: '99.999999' });
  });

  test('deducts the fee of the app from the exchanged amount', async () => {
    const wallet = await makeWallet();
    const fee_configuration = { type: 'total_fee_bps', value: 100 };
    expect(await quote(wallet, acrossChains('100', { fee_configuration }))).toMatchObject({
      estimated_output_amount: '98.88',
      estimated_fees: [
        { type: 'relayer', amount: '0.12' },
        { type: 'developer', amount: '1' },
      ],
    });
  });

  test('needs no funds, but shows gas only with them', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const estimate = await quote(wallet, acrossChains('100'));
    expect(estimate).toMatchObject({ estimated_output_amount: '99.88' });
    expect(estimate).not.toHaveProperty('estimated_gas');
  });

  test('a quote requires the owner or an additional signer, and a wallet of the app', async () => {
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [bobKey.publicKey] },
    });
    const wallet = await makeWallet({
      owner: { public_key: aliceKey.publicKey },
      additional_signers: [{ signer_id: quorum.id }],
    });
    expect(await refused('quoteWalletTransfer', wallet, acrossChains('1'))).toMatchObject({
      status: 401,
      code: 'missing_or_empty_authorization_header',
    });
    // An unauthorized caller does not learn what cannot be exchanged either.
    expect(await refused('quoteWalletTransfer', wallet, acrossChains('99999999'))).toMatchObject({
      status: 401,
    });
    await quote(wallet, acrossChains('1'), { signWith: [aliceKey.privateKey] });
    await quote(wallet, acrossChains('1'), { signWith: [bobKey.privateKey] });
    const other = await asOtherApp(sandbox);
    const path = { wallet_id: wallet.id };
    expect(await refusal(other, 'quoteWalletTransfer', { path, body: acrossChains('1') })).toEqual({
      status: 404,
      body: { error: 'Wallet not found' },
    });
    const { body: custodial } = await call(sandbox, 'createCustodialWallet', {
      body: { provider: 'bridge', provider_user_id: 'cust_1', chain: 'base' },
    });
    expect(
      await refused('quoteWalletTransfer', custodial as unknown as Wallet, acrossChains('1')),
    ).toMatchObject({
      code: 'not_supported',
    });
  });

  test('a quote is not needed for a plain transfer', async () => {
    const plain = { ...acrossChains('1'), destination: { address: receiver } };
    expect(await refused('quoteWalletTransfer', await makeWallet(), plain)).toMatchObject({
      status: 400,
      code: 'invalid_data',
    });
  });
});

const base = { asset: 'usdc', chain: 'base', amount: '1' };
const solanaAddress = 'HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk';
describe.each(['quoteWalletTransfer', 'transferFromWallet'] as const)('%s refuses', (operation) => {
  test.each([
    [
      'an asset that the other chain has not',
      { source: { ...base, asset: 'eurc' }, destination: { address: receiver, chain: 'arbitrum' } },
      'not_supported',
      '/destination/asset: no asset `eurc` is known on `arbitrum`',
    ],
    [
      'a token without a name',
      { source: { chain: 'base', asset_address: receiver, amount: '1' } },
      'not_supported',
      '/source/asset_address: only assets that have a name here are exchanged',
    ],
    [
      'test money for real money',
      { source: { ...base, chain: 'base_sepolia' }, destination: { address: receiver, chain: 'base' } },
      'not_supported',
      '/destination/chain: nothing is exchanged between a test network and a main network',
    ],
    [
      'an address of the source chain where the destination has others',
      { destination: { address: receiver, chain: 'solana' } },
      'invalid_data',
      '/destination/address: expected an address on `solana`',
    ],
    [
      'an address of another chain than the destination',
      { destination: { address: solanaAddress, chain: 'arbitrum' } },
      'invalid_data',
      '/destination/address: expected an address on `arbitrum`',
    ],
    [
      'more than the solver has',
      { source: { ...base, amount: '1001202' } },
      'invalid_data',
      '/source/amount: the amount exceeds what the exchange can pay',
    ],
    [
      'a number beyond all numbers',
      { source: { ...base, amount: '9'.repeat(100) } },
      'invalid_data',
      '/source/amount: the amount exceeds what the exchange can pay',
    ],
    [
      'the same as what must arrive',
      { source: { asset: 'usdc', chain: 'base' }, amount: '9'.repeat(100), amount_type: 'exact_output' },
      'invalid_data',
      '/amount: the amount exceeds what the exchange can pay',
    ],
    [
      'too little to buy anything',
      {
        source: { ...base, asset: 'eth', amount: '0.000000000333733814' },
        destination: { address: receiver, asset: 'usdc' },
      },
      'invalid_data',
      '/source/amount: the amount is too small for any output',
    ],
    [
      'an amount finer than the asset that it fixes',
      { source: { asset: 'usdc', chain: 'base' }, amount: '0.0000001', amount_type: 'exact_output' },
      'invalid_data',
      '/amount: `usdc` has 6 decimals at most',
    ],
    [
      'a fee that leaves nothing',
      { fee_configuration: { type: 'total_fee_bps', value: 9988 } },
      'invalid_data',
      '/fee_configuration/value: expected fees below the input, including the fee of the exchange',
    ],
  ])('%s', async (_, change, code, error) => {
    const body = { ...acrossChains('1'), ...change };
    expect(await refused(operation, await makeWallet(), body)).toEqual({ status: 400, code, error });
  });
});

describe('a transfer', () => {
  test('to another chain is pending until the exchange has paid', async () => {
    const wallet = await makeWallet();
    const begun = await transfer(wallet, acrossChains('100', { reference_id: 'invoice-2041' }));
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
      source_amount: '100',
      destination_address: receiver,
      destination_chain: 'arbitrum',
      destination_amount: null,
      amount_type: 'exact_input',
      estimated_gas: {
        amount: expect.any(String),
        base_amount: expect.stringMatching(/^\d+$/),
        gas_asset: 'eth',
      },
      estimated_fees: [{ type: 'relayer', amount: '0.12' }],
      gas: null,
      fees: null,
    });
    expect((await actionOf(begun, 'steps')).steps).toMatchObject([
      { type: 'evm_transaction', caip2: 'eip155:8453', status: 'pending' },
      { type: 'external_transaction', caip2: 'eip155:42161', status: 'preparing', transaction_hash: null },
    ]);

    // Only the block of the deposit, and none after it.
    await wait(2);
    const deposited = await actionOf(begun, 'steps');
    expect(deposited.status).toBe('pending');
    expect(deposited.steps).toMatchObject([
      { status: 'confirmed' },
      { status: 'pending', transaction_hash: null },
    ]);
    expect(await holds(wallet.address, 'base', usdcOnBase)).toEqual([900_000_000n]);
    expect(await holds(receiver, 'arbitrum', usdcOnArbitrum)).toEqual([0n]);

    await wait(4);
    const { steps, ...shown } = await actionOf(begun, 'steps');
    expect(shown).toEqual({
      ...begun,
      status: 'succeeded',
      destination_amount: '99.88',
      fees: [{ type: 'relayer', amount: '0.12' }],
      gas: { amount: expect.any(String), base_amount: expect.stringMatching(/^\d+$/), gas_asset: 'eth' },
    });
    expect(await holds(receiver, 'arbitrum', usdcOnArbitrum)).toEqual([99_880_000n]);
    expect(await holds(receiver, 'base', usdcOnBase)).toEqual([0n]);
    const [payment] =
      (await sandbox.chains.find('eip155:42161')?.transfersOf?.({
        address: receiver,
        tokenAddresses: [usdcOnArbitrum],
        beforePosition: undefined,
        limit: 5,
      })) ?? [];
    expect(payment).toMatchObject({ rawAmount: 99_880_000n, sender: expect.stringMatching(/501[fF][eE]$/) });
    expect(steps).toEqual([
      expect.objectContaining({ type: 'evm_transaction', status: 'confirmed' }),
      {
        type: 'external_transaction',
        caip2: 'eip155:42161',
        status: 'confirmed',
        transaction_hash: payment?.hash,
      },
    ]);
    expect(
      (await eventsOf(begun.id)).map(({ type, status, steps: reported }) => [type, status, reported]),
    ).toEqual([
      ['wallet_action.transfer.created', 'pending', undefined],
      ['wallet_action.transfer.succeeded', 'succeeded', steps],
    ]);
    await wait(3600);
    expect(await holds(receiver, 'arbitrum', usdcOnArbitrum)).toEqual([99_880_000n]);
    expect(await eventsOf(begun.id)).toHaveLength(2);
  });

  test('a transfer delivers exactly the requested amount', async () => {
    const wallet = await makeWallet();
    const begun = await transfer(wallet, {
      source: { asset: 'eth', chain: 'base' },
      amount: '100',
      destination: { address: receiver, asset: 'usdc' },
      amount_type: 'exact_output',
    });
    expect(begun).toMatchObject({
      source_amount: '0.033373381391002538',
      destination_asset: 'usdc',
      amount_type: 'exact_output',
    });
    expect(begun).not.toHaveProperty('destination_chain');
    await wait(10);
    const done = await actionOf(begun, 'steps');
    expect(done).toMatchObject({ status: 'succeeded', destination_amount: '100' });
    expect(await holds(receiver, 'base', usdcOnBase)).toEqual([100_000_000n]);
    const spent = 33_373_381_391_002_538n + BigInt(done.gas?.base_amount ?? 0);
    expect(await holds(wallet.address, 'base', null)).toEqual([ether - spent]);
  });

  test('a transfer works from Ethereum to Solana and from Solana to Tron, with tokens and native assets', async () => {
    const wallet = await makeWallet();
    const { body: onSolana } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
    const { body: onTron } = await call(sandbox, 'createWallet', { body: { chain_type: 'tron' } });
    const first = await transfer(
      wallet,
      acrossChains('100', { destination: { address: onSolana.address, chain: 'solana' } }),
    );
    const second = await transfer(
      wallet,
      acrossChains('15', { destination: { address: onSolana.address, chain: 'solana', asset: 'sol' } }),
    );
    await wait(10);
    expect(await actionOf(first, 'steps')).toMatchObject({
      status: 'succeeded',
      destination_amount: '99.88',
    });
    // 15 * 0.9988 / 150
    expect(await actionOf(second, 'steps')).toMatchObject({
      status: 'succeeded',
      destination_amount: '0.09988',
    });
    expect(await holds(onSolana.address, 'solana', null, usdcOnSolana)).toEqual([99_880_000n, 99_880_000n]);

    const third = await transfer(onSolana, {
      source: { asset: 'usdc', chain: 'solana', amount: '50' },
      destination: { address: onTron.address, chain: 'tron', asset: 'trx' },
    });
    const fourth = await transfer(onSolana, {
      source: { asset: 'sol', chain: 'solana', amount: '0.001' },
      destination: { address: onTron.address, chain: 'tron', asset: 'usdt' },
    });
    await wait(10);
    expect(await actionOf(third, 'steps')).toMatchObject({
      status: 'succeeded',
      destination_amount: '199.76',
    });
    expect(await actionOf(fourth, 'steps')).toMatchObject({
      status: 'succeeded',
      destination_amount: '0.14982',
    });
    const usdt = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
    expect(await holds(onTron.address, 'tron', null, usdt)).toEqual([199_760_000n, 149_820n]);

    const back = await transfer(onTron, {
      source: { asset: 'trx', chain: 'tron', amount: '100' },
      destination: { address: receiver, chain: 'base', asset: 'usdc' },
    });
    await wait(10);
    expect(await actionOf(back, 'steps')).toMatchObject({
      status: 'succeeded',
      destination_amount: '24.97',
      steps: [{ type: 'tvm_transaction' }, { type: 'external_transaction', caip2: 'eip155:8453' }],
    });
    expect(await holds(receiver, 'base', usdcOnBase)).toEqual([24_970_000n]);
  });

  test('to a wallet of this server is recorded as a deposit', async () => {
    const wallet = await makeWallet();
    const { body: other } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await transfer(
      wallet,
      acrossChains('100', { destination: { address: other.address, chain: 'arbitrum' } }),
    );
    await wait(10);
    await wait(10);
    const rows = await sandbox.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select('payload')
      .where('type', '=', 'wallet.funds_deposited')
      .execute();
    const deposits = rows.map(({ payload }) => JSON.parse(payload));
    expect(deposits.filter(({ wallet_id: id }) => id === other.id)).toMatchObject([
      { caip2: 'eip155:42161', amount: '99880000', sender: expect.stringMatching(/501[fF][eE]$/) },
    ]);
  });

  test('that cannot be paid out fails, and the deposit is refunded', async () => {
    const wallet = await makeWallet();
    // A sentinel recipient: payments to it revert.
    const revertsAt = '0x00000000000000000000000000000000dead0003';
    const begun = await transfer(
      wallet,
      acrossChains('100', { destination: { address: revertsAt, chain: 'arbitrum' } }),
    );
    await wait(10);
    const failed = await actionOf(begun, 'steps');
    const message = 'The exchange gave the deposit back: the payment to the recipient reverts.';
    const refund = { caip2: 'eip155:8453', transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) };
    expect(failed).toMatchObject({
      status: 'failed',
      destination_amount: null,
      fees: null,
      gas: { gas_asset: 'eth' },
      failure_reason: { message, details: { refund } },
      steps: [
        { status: 'confirmed' },
        { status: 'failed', transaction_hash: null, failure_reason: { message, details: { refund } } },
      ],
    });
    expect(await holds(wallet.address, 'base', usdcOnBase)).toEqual([1_000_000_000n]);
    expect(await holds(revertsAt, 'arbitrum', usdcOnArbitrum)).toEqual([0n]);
    expect((await eventsOf(begun.id)).map(({ type }) => type)).toEqual([
      'wallet_action.transfer.created',
      'wallet_action.transfer.failed',
    ]);
  });

  test('a transfer that the wallet cannot afford is refused immediately', async () => {
    const wallet = await makeWallet();
    expect(await refused('transferFromWallet', wallet, acrossChains('1000.000001'))).toMatchObject({
      status: 400,
      code: 'insufficient_funds',
    });
  });

  test('a transfer is signed by the owner', async () => {
    const wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
    expect(await refused('transferFromWallet', wallet, acrossChains('1'))).toMatchObject({ status: 401 });
    await transfer(wallet, acrossChains('1'), { signWith: [aliceKey.privateKey] });
    await wait(10);
    expect(await holds(receiver, 'arbitrum', usdcOnArbitrum)).toEqual([998_800n]);
  });

  test('of an intent is quoted when the intent is executed, and settles it', async () => {
    const wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
    const { body: intent } = await call(sandbox, 'createWalletTransferIntent', {
      path: { wallet_id: wallet.id },
      body: acrossChains('1') as never,
    });
    // A quote made now would have expired.
    await wait(3600);
    await authorize(sandbox, intent, aliceKey.privateKey);
    await wait(10);
    expect(await holds(receiver, 'arbitrum', usdcOnArbitrum)).toEqual([998_800n]);
    const { body: executed } = await call(sandbox, 'getIntent', { path: { intent_id: intent.intent_id } });
    expect(executed).toMatchObject({
      status: 'executed',
      action_result: { response_body: { status: 'succeeded', destination_amount: '0.9988' } },
    });
  });

  test('a transfer is replayed under its idempotency key and executed once per nonce', async () => {
    const wallet = await makeWallet();
    const body = acrossChains('1', { nonce: 'treasury-2025-11-21-000042' });
    const first = await transfer(wallet, body, { idempotencyKey: 'pay-1' });
    expect(await transfer(wallet, body, { idempotencyKey: 'pay-1' })).toEqual(first);
    expect(await refused('transferFromWallet', wallet, body)).toMatchObject({ status: 409 });
    await wait(10);
    expect(await holds(receiver, 'arbitrum', usdcOnArbitrum)).toEqual([998_800n]);
  });
});

describe('policies', () => {
  const condition = (field: string, operator: string, value: string) => ({
    field_source: 'action_request_body',
    field,
    operator,
    value,
  });
  const denied = { status: 400, code: 'policy_violation' };

  async function makeWalletUnder(action: 'ALLOW' | 'DENY', ...conditions: object[]): Promise<Wallet> {
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
    return makeWallet({ policy_ids: [body.id] });
  }

  test('policies evaluate the destination chain and asset', async () => {
    const toArbitrum = await makeWalletUnder('ALLOW', condition('destination.chain', 'eq', 'arbitrum'));
    await transfer(toArbitrum, acrossChains('1'));
    const toOptimism = acrossChains('1', { destination: { address: receiver, chain: 'optimism' } });
    expect(await refused('transferFromWallet', toArbitrum, toOptimism)).toMatchObject(denied);
    const noEther = await makeWalletUnder('DENY', condition('destination.asset', 'eq', 'eth'));
    await transfer(noEther, acrossChains('1'));
    const toEther = acrossChains('1', { destination: { address: receiver, asset: 'eth' } });
    expect(await refused('transferFromWallet', noEther, toEther)).toMatchObject(denied);
  });

  test.each([
    ['ALLOW', 'source.amount', 'lte'],
    ['ALLOW', 'amount', 'lte'],
    ['DENY', 'source.amount', 'gt'],
    ['DENY', 'amount', 'gt'],
  ] as const)(
    '%s by %s limits the amount spent, whichever side is fixed',
    async (action, field, operator) => {
      const wallet = await makeWalletUnder(action, condition(field, operator, '10'));
      const destination = { address: receiver, asset: 'eth' };
      await transfer(wallet, acrossChains('10', { destination }));
      expect(
        await refused('transferFromWallet', wallet, acrossChains('10.1', { destination })),
      ).toMatchObject(denied);
      // 0.1 ETH would cost 300 USDC.
      const source = { asset: 'usdc', chain: 'base' };
      const exact = { destination, amount_type: 'exact_output' };
      const atTop = { ...exact, source, amount: '0.1' };
      const inSource = { ...exact, source: { ...source, amount: '0.1' } };
      expect(await refused('transferFromWallet', wallet, atTop)).toMatchObject(denied);
      expect(await refused('transferFromWallet', wallet, inSource)).toMatchObject(denied);
      await transfer(wallet, { ...atTop, amount: '0.003' });
    },
  );
});
