import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  faultOfIban,
  isBic,
  isBrCode,
  isRoutingNumber,
} from '../../src/domain/money/external-fiat-accounts/check-account.ts';
import { FiatDepositAccountEntity } from '../../src/domain/money/fiat-deposits/fiat-deposit.entity.ts';
import { chainOfCaip2 } from '../../src/engine/assets/known-chains.ts';
import type { FiatDepositAccount, FiatDepositInstructions, Wallet } from '../../src/generated/schemas.ts';
import { call, control as controlPlane, refusal } from '../support/call.ts';
import { control, verifiedUser, walletOf } from '../support/fiat/customers.ts';
import { askControl, asOtherApp, configureApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { unknownId } from './policies/rules.ts';

describe('crypto deposit accounts', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const toUsdc = { asset: 'usdc', chain: 'base' };
  const zeroAddress = `0x${'0'.repeat(40)}`;
  const seeded = 'j3h2jsj9vzcghv28s3w1prka';
  const fromConfig = (deposit_config_id: string) => ({ type: 'deposit_config', deposit_config_id }) as const;

  async function makeWallet(app = sandbox): Promise<{ wallet_id: string }> {
    const { body } = await call(app, 'createWallet', { body: { chain_type: 'ethereum' } });
    return { wallet_id: body.id };
  }

  test('the chains and currencies are those on which deposits can be converted without gas', async () => {
    const { body } = await call(sandbox, 'getCryptoDepositConfig', {});
    expect(body.chains.base).toEqual({
      ...{ caip2: 'eip155:8453', chain_id: 8453, display_name: 'Base', vm_type: 'evm' },
      icon_url: expect.stringMatching(/^data:image\/svg\+xml,%3Csvg/),
    });
    expect(body.chains).not.toHaveProperty('solana');
    // Tempo has no paymaster here.
    expect(body.chains).not.toHaveProperty('tempo');
    const listed = new Set(Object.values(body.chains).map(({ caip2 }) => caip2));
    for (const { symbol, chains } of body.currencies) {
      expect(chains.length, symbol).toBeGreaterThan(0);
      for (const { caip2 } of chains) expect(listed, symbol).toContain(caip2);
    }
    const eth = body.currencies.find(({ symbol }) => symbol === 'ETH')!;
    expect(eth).toMatchObject({ name: 'Ether' });
    expect(eth.chains).toContainEqual({ caip2: 'eip155:8453', address: zeroAddress, decimals: 18 });
    const usdc = body.currencies.find(({ symbol }) => symbol === 'USDC')!;
    const onBase = usdc.chains.find(({ caip2 }) => caip2 === 'eip155:8453')!;
    expect(onBase).toEqual({
      ...{ caip2: 'eip155:8453', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', decimals: 6 },
    });
    expect(chainOfCaip2(onBase.caip2)?.name).toBe('base');
  });

  test('currencies are found by name, symbol and address', async () => {
    const { body: config } = await call(sandbox, 'getCryptoDepositConfig', {});
    const search = async (q: string) =>
      (await call(sandbox, 'searchCryptoDepositConfig', { query: { q } })).body;
    const currency = (symbol: string) => ({
      ...config.currencies.find((one) => one.symbol === symbol)!,
      verified: true,
    });
    const usdc = currency('USDC');
    for (const q of [
      '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913 ',
    ]) {
      const found = await search(q);
      expect(found.currencies).toEqual([usdc]);
      expect(Object.keys(found.chains).sort()).toEqual(usdc.chains.map(({ caip2 }) => caip2).sort());
      expect(found.chains['eip155:8453']).toEqual(config.chains.base);
    }
    expect((await search('usd')).currencies).toEqual(
      config.currencies
        .filter(({ name, symbol }) => /usd/i.test(name + symbol))
        .map((one) => ({ ...one, verified: true })),
    );
    expect((await search('eTHe')).currencies).toContainEqual(currency('ETH'));
    expect(await search('no such currency')).toEqual({ chains: {}, currencies: [] });
    for (const query of [{}, { q: '' }, { q: ' ' }, { q: 'a'.repeat(257) }]) {
      const refused = await refusal(sandbox, 'searchCryptoDepositConfig', { query });
      expect([refused.status, refused.body.code], JSON.stringify(query)).toEqual([400, 'invalid_data']);
    }
  });

  test('chains that cannot be read are a 500', async () => {
    await using broken = await startSandbox();
    const find = () => {
      throw new Error('no list of chains');
    };
    Object.assign(broken.services, { chains: { ...broken.services.chains, find } });
    for (const [id, input] of [
      ['getCryptoDepositConfig', {}],
      ['searchCryptoDepositConfig', { query: { q: 'usdc' } }],
    ] as const) {
      expect(await refusal(broken, id, input)).toMatchObject({
        ...{ status: 500, body: { error: 'Service unavailable.' } },
      });
    }
  });

  test('a deposit is quoted, of the worth of $100 unless the request has an amount', async () => {
    const source = { asset: 'eth', chain: 'arbitrum' };
    const { body: typical } = await call(sandbox, 'quoteCryptoDeposit', {
      body: { source, destination: toUsdc },
    });
    const [input, output] = [Number(typical.input_amount), Number(typical.estimated_output_amount)];
    expect(input * 3000).toBeCloseTo(100, 2);
    expect(output).toBeLessThan(100);
    expect(output).toBeGreaterThan(99);
    expect(typical.created_at).toBe(new Date(sandbox.clock.now()).toISOString());
    // By contract and CAIP-2 id, and by a router of one chain.
    const { body: given } = await call(sandbox, 'quoteCryptoDeposit', {
      body: {
        source: { asset: zeroAddress, chain: 'eip155:8453' },
        destination: { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain: 'base' },
        ...{ input_amount: '0.02', slippage_bps: 100 },
      },
    });
    expect(given.input_amount).toBe('0.02');
    expect(Number(given.estimated_output_amount)).toBeGreaterThan(59);
    expect(Number(given.estimated_output_amount)).toBeLessThan(60);
  });

  test.each<[string, object, string, string]>([
    ['an amount of nothing', { input_amount: '0' }, 'invalid_data', '/input_amount:'],
    ['an amount finer than the asset', { input_amount: '0.0000001' }, 'invalid_data', '/input_amount:'],
    ['an amount too small to deliver', { input_amount: '0.000001' }, 'invalid_data', '/input_amount:'],
    ['an unknown asset', { source: { asset: 'gold', chain: 'base' } }, 'not_supported', '/source/asset:'],
    [
      'an unknown chain',
      { destination: { asset: 'usdc', chain: 'moon' } },
      'not_supported',
      '/destination/chain:',
    ],
    [
      'the same asset',
      { source: { asset: 'usdc', chain: 'base' }, destination: toUsdc },
      'not_supported',
      '/destination:',
    ],
    [
      'a test network for a main network',
      { destination: { asset: 'usdc', chain: 'sepolia' } },
      'not_supported',
      '/destination:',
    ],
    ['a source on Solana', { source: { asset: 'sol', chain: 'solana' } }, 'not_supported', '/source/chain:'],
  ])('%s is not quoted', async (_, more, code, error) => {
    const body = { source: { asset: 'usdc', chain: 'arbitrum' }, destination: toUsdc, ...more };
    const answer = await refusal(sandbox, 'quoteCryptoDeposit', { body });
    expect([answer.status, answer.body.code]).toEqual([400, code]);
    expect(answer.body.error).toContain(error);
  });

  test('an account has the routes of a configuration of the app', async () => {
    const path = await makeWallet();
    const { body } = await call(sandbox, 'createCryptoDepositAccount', { path, body: fromConfig(seeded) });
    expect(body.deposit_accounts).toEqual([
      {
        wallet_id: expect.not.stringMatching(path.wallet_id),
        deposit_address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
        ...{ source: { mode: 'all' }, destination: toUsdc },
      },
    ]);
    const listed = await call(sandbox, 'listCryptoDepositAccounts', { path });
    expect(listed.body).toEqual({ data: body.deposit_accounts, next_cursor: null });
    const other = await asOtherApp(sandbox);
    const theirs = await makeWallet(other);
    for (const [app, at, id] of [
      [sandbox, path, unknownId],
      [other, theirs, seeded],
    ] as const) {
      const input = { path: at, body: fromConfig(id) };
      const answer = await refusal(app, 'createCryptoDepositAccount', input);
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_data']);
      expect(answer.body.error).toContain('/deposit_config_id:');
    }
    for (const operation of ['createCryptoDepositAccount', 'listCryptoDepositAccounts'] as const) {
      const input = {
        path,
        ...(operation === 'createCryptoDepositAccount' ? { body: fromConfig(seeded) } : {}),
      };
      expect((await refusal(other, operation, input)).status).toBe(404);
    }
    const query = { after: '2025-11-21T10:00:00Z' };
    expect((await refusal(other, 'getNextCryptoDepositOrder', { path, query })).status).toBe(404);
  });

  test('the routes of a configuration are one account each, and both are made or none', async () => {
    const routes = [
      { source: { mode: 'include', values: [{ asset: 'usdt', chain: 'arbitrum' }] }, destination: toUsdc },
      {
        source: { mode: 'exclude', values: [{ asset: 'usdt' }] },
        destination: { asset: 'eth', chain: 'base' },
      },
    ];
    const bad = { source: { mode: 'include', values: [{ asset: 'gold' }] }, destination: toUsdc };
    await configureApp(sandbox, {
      deposit_configs: [
        { id: 'two', routes },
        { id: 'bad', routes: [...routes, bad] },
      ],
    });
    const path = await makeWallet();
    const refused = await refusal(sandbox, 'createCryptoDepositAccount', { path, body: fromConfig('bad') });
    expect([refused.status, refused.body.code]).toEqual([400, 'not_supported']);
    expect(refused.body.error).toContain('/deposit_config_id/source/values/0/asset:');
    expect((await call(sandbox, 'listCryptoDepositAccounts', { path })).body.data).toEqual([]);
    const { body } = await call(sandbox, 'createCryptoDepositAccount', { path, body: fromConfig('two') });
    expect(body.deposit_accounts.map(({ source, destination }) => ({ source, destination }))).toEqual(routes);
    const again = await call(sandbox, 'createCryptoDepositAccount', { path, body: fromConfig('two') });
    expect(again.body).toEqual(body);
  });

  test.each<[string, unknown, string]>([
    ['an object', {}, '/settings/deposit_configs'],
    ['no routes', [{ id: 'a', routes: [] }], '/settings/deposit_configs/0/routes'],
    ['an unknown field', [{ id: 'a', color: 'red' }], '/settings/deposit_configs/0/color'],
    [
      'a destination without a chain',
      [{ id: 'a', routes: [{ source: { mode: 'all' }, destination: { asset: 'usdc' } }] }],
      '/settings/deposit_configs/0/routes/0/destination/chain',
    ],
    [
      'values for all assets',
      [{ id: 'a', routes: [{ source: { mode: 'all', values: [toUsdc] }, destination: toUsdc }] }],
      '/settings/deposit_configs/0/routes/0/source/values',
    ],
    [
      'an unknown mode',
      [{ id: 'a', routes: [{ source: { mode: 'some' }, destination: toUsdc }] }],
      '/settings/deposit_configs/0/routes/0/source/mode',
    ],
    [
      'one id twice',
      [1, 2].map(() => ({ id: 'a', routes: [{ source: { mode: 'all' }, destination: toUsdc }] })),
      '/settings/deposit_configs/1/id',
    ],
  ])('a setting with %s is refused', async (_, deposit_configs, pointer) => {
    const answer = await askControl(sandbox, 'PUT', `apps/${sandbox.appId}`, {
      settings: { deposit_configs },
    });
    expect(answer.status).toBe(400);
    expect((answer.body as { error: string }).error).toContain(`${pointer}:`);
  });

  test('the next order needs a time with a zone', async () => {
    const path = await makeWallet();
    for (const after of ['2025-11-21T10:00:00', '2025-11-21', 'now']) {
      const answer = await refusal(sandbox, 'getNextCryptoDepositOrder', { path, query: { after } });
      expect([after, answer.status, answer.body.code]).toEqual([after, 400, 'invalid_data']);
    }
    const query = { after: '2025-11-21T10:00:00+01:00' };
    const { body } = await call(sandbox, 'getNextCryptoDepositOrder', { path, query });
    expect(body).toEqual({ order: null });
  });
});

describe('fiat deposit accounts', () => {
  const at = { provider: 'bridge', environment: 'sandbox' } as const;
  const destination = { asset: 'usdc', chain: 'base' };

  let sandbox: TestSandbox;
  let wallet: Wallet;
  let userId: string;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  beforeEach(async () => {
    await sandbox.reset();
    userId = await verifiedUser(sandbox);
    wallet = await walletOf(sandbox, userId);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  async function open(currency: string): Promise<FiatDepositAccount> {
    const { body } = await call(sandbox, 'createFiatDepositAccount', {
      path: { wallet_id: wallet.id },
      body: { ...at, source: { currency }, destination },
    });
    return body.fiat_deposit_account;
  }
  const refused = (body: object) =>
    refusal(sandbox, 'createFiatDepositAccount', {
      path: { wallet_id: wallet.id },
      body: { ...at, source: { currency: 'eur' }, destination, ...body },
    });

  /** The instructions of each currency have numbers that pass the checks of real ones. */
  const checks: Readonly<Record<string, (instructions: FiatDepositInstructions) => boolean>> = {
    usd: ({ bank_routing_number: routing, bank_account_number: account }) =>
      isRoutingNumber(routing!) && /^\d{4,17}$/.test(account!),
    eur: ({ iban, bic }) => faultOfIban(iban!) === undefined && isBic(bic!),
    gbp: ({ sort_code: sort, account_number: account }) => /^\d{6}$/.test(sort!) && /^\d{8}$/.test(account!),
    brl: ({ br_code: code }) => isBrCode(code!),
    // Banco de México: the digits times 3, 7, 1 in turn, each modulo 10, and the check digit are a multiple of 10.
    mxn: ({ clabe }) =>
      /^\d{18}$/.test(clabe!) &&
      [...clabe!].reduce(
        (sum, digit, place) =>
          sum + (place < 17 ? (Number(digit) * [3, 7, 1][place % 3]!) % 10 : Number(digit)),
        0,
      ) %
        10 ===
        0,
    cop: ({ bre_b_key: key }) => key !== undefined && key.length > 3,
  };

  test.each(Object.keys(checks))('an account in %s has instructions with valid numbers', async (currency) => {
    const account = await open(currency);
    expect(account).toEqual({
      id: expect.stringMatching(/^c[0-9a-z]{24}$/),
      wallet_id: wallet.id,
      ...at,
      status: 'activated',
      source: { currency, payment_rails: expect.arrayContaining([expect.any(String)]) },
      destination,
      developer_fee_percent: '0',
      deposit_instructions: expect.any(Object),
      created_at: expect.stringMatching(/Z$/),
    });
    expect(checks[currency]!(account.deposit_instructions!)).toBe(true);
    const path = { wallet_id: wallet.id, deposit_account_id: account.id };
    expect((await call(sandbox, 'getFiatDepositAccount', { path })).body).toEqual({
      fiat_deposit_account: account,
    });
  });

  test('what cannot be deposited is not supported', async () => {
    const unsupported: readonly (readonly [string, object])[] = [
      ['/source/currency', { source: { currency: 'jpy' } }],
      ['/destination/chain', { destination: { asset: 'usdc', chain: 'nowhere' } }],
      ['/destination/chain', { destination: { asset: 'usdc', chain: 'solana' } }],
      ['/destination/asset', { destination: { asset: 'doge', chain: 'base' } }],
    ];
    for (const [pointer, body] of unsupported) {
      expect(await refused(body)).toMatchObject({
        status: 400,
        body: { code: 'not_supported', error: expect.stringMatching(new RegExp(`^${pointer}: `)) },
      });
    }
  });

  test('only the wallet of a verified user gets an account', async () => {
    const invalid = { status: 400, body: { code: 'invalid_state' } };
    expect(await refused({ environment: 'production' })).toMatchObject(invalid);
    const { body: nobodys } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    wallet = nobodys;
    expect(await refused({})).toMatchObject(invalid);
    // A wallet that a user alone owns is that user's.
    const { body: owned } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: userId } },
    });
    wallet = owned;
    expect((await open('eur')).wallet_id).toBe(owned.id);
  });

  test('unknown accounts and wallets are not found; the provider may be down', async () => {
    const account = await open('eur');
    const elsewhere = await walletOf(sandbox, userId);
    for (const path of [
      { wallet_id: elsewhere.id, deposit_account_id: account.id },
      { wallet_id: wallet.id, deposit_account_id: 'unknown' },
      { wallet_id: 'unknown', deposit_account_id: account.id },
    ]) {
      expect(await refusal(sandbox, 'getFiatDepositAccount', { path })).toMatchObject({ status: 404 });
    }
    const path = { wallet_id: 'unknown' };
    expect(await refusal(sandbox, 'listFiatDepositAccounts', { path, query: at })).toMatchObject({
      status: 404,
    });
    const body = { ...at, source: { currency: 'usd' }, destination };
    expect(await refusal(sandbox, 'createFiatDepositAccount', { path, body })).toMatchObject({ status: 404 });
    sandbox.fiat.setUp(false);
    expect(await refused({ source: { currency: 'usd' } })).toMatchObject({ status: 503 });
    expect(await open('eur')).toEqual(account);
    sandbox.fiat.setUp(true);
  });

  test('a fee of the app is from 0 to below 100 percent, and does not change', async () => {
    const fees = ['0', '1.5', '99.999999999999999999'];
    for (const [index, fee] of fees.entries()) {
      const currency = ['eur', 'usd', 'gbp'][index]!;
      const { body } = await call(sandbox, 'createFiatDepositAccount', {
        path: { wallet_id: wallet.id },
        body: { ...at, source: { currency }, destination, developer_fee_percent: fee },
      });
      expect(body.fiat_deposit_account.developer_fee_percent).toBe(fee);
    }
    const { body } = await call(sandbox, 'listFiatDepositAccounts', {
      path: { wallet_id: wallet.id },
      query: at,
    });
    const listed = body.fiat_deposit_accounts.map((account) => account.developer_fee_percent);
    expect(listed.sort()).toEqual(fees);
    for (const fee of ['100', '-1', '1.', '.5', '1e1', ' 1', '1.5%', '', '1.5\n', 1.5, null]) {
      expect(await refused({ developer_fee_percent: fee })).toMatchObject({
        status: 400,
        body: { code: 'invalid_data', error: expect.stringMatching(/developer_fee_percent/) },
      });
    }
    expect(await refused({ source: { currency: 'usd' }, developer_fee_percent: '2' })).toMatchObject({
      status: 409,
      body: {
        code: 'resource_conflict',
        error: '/developer_fee_percent: the activated account has `1.5`, got `2`',
      },
    });
  });

  test('a wallet has at most 50 accounts', async () => {
    const account = await open('eur');
    // Rows instead of 48 requests.
    const em = sandbox.database.orm.em.fork();
    const first = await em.findOneOrFail(FiatDepositAccountEntity, { id: account.id });
    const copies = Array.from({ length: 48 }, (_, number) => ({
      ...{ ...first, id: `${account.id}-${number}`, virtualAccountId: `copy-${number}` },
      asset: `copy-${number}`,
    }));
    await em.insertMany(FiatDepositAccountEntity, copies);
    await open('usd');
    expect(await refused({ source: { currency: 'gbp' } })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', error: 'expected at most 50 fiat deposit accounts of a wallet' },
    });
    // What is open needs no room.
    expect(await open('eur')).toEqual(account);
  });

  test('a held deposit is released or refunded by the control plane', async () => {
    const account = await open('eur');
    const pay = (reference: string) =>
      control(sandbox, '/fiat_deposits', {
        deposit_account_id: account.id,
        amount: '100',
        reference,
        outcome: 'in_review',
      });
    const [first, second] = [await pay('one'), await pay('two')];
    expect(first).toMatchObject({ status: 200, body: { deposit_account_id: account.id, state: 'received' } });
    expect((await pay('one')).body.id).toBe(first.body.id);
    sandbox.clock.advance(3000);
    await sandbox.settle();
    expect((await pay('one')).body.state).toBe('in_review');
    await control(sandbox, `/fiat_deposits/${first.body.id}/release`);
    await control(sandbox, `/fiat_deposits/${second.body.id}/refund`);
    for (let tick = 0; tick < 4; tick++) {
      sandbox.clock.advance(3000);
      await sandbox.settle();
    }
    expect((await pay('one')).body.state).toBe('completed');
    expect((await pay('two')).body.state).toBe('failed');
    expect(await control(sandbox, `/fiat_deposits/${first.body.id}/refund`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_state' },
    });
    expect((await control(sandbox, '/fiat_deposits/unknown/release')).status).toBe(404);
    const nowhere = { deposit_account_id: 'unknown', amount: '1', reference: 'three' };
    expect((await control(sandbox, '/fiat_deposits', nowhere)).status).toBe(404);
    const nothing = { deposit_account_id: account.id, amount: '0', reference: 'three' };
    expect((await control(sandbox, '/fiat_deposits', nothing)).status).toBe(400);
  });

  test('the books show the money of the bank, and its treasury among the holders on the chain', async () => {
    const account = await open('eur');
    const deposits = [
      { reference: 'kept', amount: '250', outcome: 'completed' },
      { reference: 'sent back', amount: '100', outcome: 'refunded' },
    ];
    for (const deposit of deposits) {
      await control(sandbox, '/fiat_deposits', { deposit_account_id: account.id, ...deposit });
    }
    for (let tick = 0; tick < 4; tick++) {
      sandbox.clock.advance(3000);
      await sandbox.settle();
    }
    const { body } = await controlPlane(sandbox, 'GET', '/_sandbox/books');
    // A quarter of a percent of 250 is 0.625, and cents are rounded down.
    expect(body.fiat).toEqual([
      {
        ...{ environment: 'sandbox', currency: 'eur', capital: '1000000000.00', paid_in: '350.00' },
        ...{ paid_out: '0.00', refunded: '100.00', fees: '0.62' },
        ...{ developer_fees: '0.00', balance: '1000000249.38' },
      },
    ]);
    const books = body.data as { given: string; minted: string; held: Record<string, string> }[];
    const usdc = books.find(({ held }) => held.bank !== undefined)!;
    expect(Object.keys(usdc.held).sort()).toEqual(['accounts', 'bank', 'borrowers', 'pools']);
    const all = Object.values(usdc.held).reduce((sum, amount) => sum + BigInt(amount), 0n);
    expect(all).toBe(BigInt(usdc.given) + BigInt(usdc.minted));
  });
});
