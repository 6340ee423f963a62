import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  faultOfIban,
  isBic,
  isBrCode,
  isRoutingNumber,
} from '../../../src/domain/base/bank-numbers/bank-numbers.ts';
import { FiatDepositAccountEntity } from '../../../src/domain/money/fiat-deposits/fiat-deposit.entity.ts';
import type { FiatDepositAccount, FiatDepositInstructions, Wallet } from '../../../src/generated/schemas.ts';
import { call, control as controlPlane, refusal } from '../../support/call.ts';
import { control, verifiedUser, walletOf } from '../../support/fiat/customers.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

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
  expect(Object.keys(usdc.held).sort()).toEqual(['accounts', 'bank']);
  expect(BigInt(usdc.held.bank!) + BigInt(usdc.held.accounts!)).toBe(
    BigInt(usdc.given) + BigInt(usdc.minted),
  );
});
