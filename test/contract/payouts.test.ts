import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { PayoutResponse, Wallet } from '../../src/generated/schemas.ts';
import { call, refusal } from '../support/call.ts';
import { control, verifiedUser, walletOf } from '../support/fiat/customers.ts';
import { fund } from '../support/fund.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

let sandbox: TestSandbox;
let user_id: string;
let wallet: Wallet;
let accountId: string;
beforeAll(async () => {
  sandbox = await startSandbox();
});
beforeEach(async () => {
  await sandbox.reset();
  user_id = await verifiedUser(sandbox);
  wallet = await walletOf(sandbox, user_id);
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 10n ** 9n });
  const { body } = await call(sandbox, 'createUserExternalFiatAccount', {
    path: { user_id },
    body: {
      provider: 'bridge',
      environment: 'sandbox',
      account_owner_name: 'Alice Example',
      currency: 'eur',
      account: { type: 'iban', account_number: 'DE67370400440532010001', bic: 'COBADEFFXXX', country: 'DEU' },
    },
  });
  accountId = body.external_fiat_account.id;
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const payout = (amount = '100') => ({
  path: { wallet_id: wallet.id },
  body: {
    source: { asset: 'usdc', chain: 'base', amount },
    destination: { fiat_account_id: accountId },
  },
});
async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) {
    sandbox.clock.advance(3000);
    await sandbox.settle();
  }
}
const actionOf = async ({ id }: PayoutResponse) =>
  (await call(sandbox, 'getWalletAction', { path: { wallet_id: wallet.id, action_id: id } })).body;

test('a bank account is paid by the rail of the request, and by none that does not reach it', async () => {
  const { body } = await call(sandbox, 'createUserExternalFiatAccount', {
    path: { user_id },
    body: {
      ...{ provider: 'bridge', environment: 'sandbox', account_owner_name: 'Alice Example', currency: 'usd' },
      account: { type: 'us', account_number: '987650004321', routing_number: '021000021' },
      address: { street_line_1: '123 Main Street', city: 'Austin', country: 'USA' },
    },
  });
  const fiat_account_id = body.external_fiat_account.id;
  const { path, body: order } = payout('10');
  const railsOfEvents = async () => {
    const rows = await sandbox.database.orm.em
      .fork()
      .execute<{ payload: string }[]>(
        "select payload from outbox_events where type = 'wallet_action.payout.created' order by sequence",
      );
    return rows.map(({ payload }) => JSON.parse(payload).destination_payment_rail as string);
  };
  const rails = ['ach', 'ach_same_day', 'wire', 'fednow'] as const;
  for (const payment_rail of rails) {
    const destination = { fiat_account_id, payment_rail };
    const paid = await call(sandbox, 'createFiatPayout', { path, body: { ...order, destination } });
    expect(paid.body.destination).toEqual(destination);
  }
  const plain = { path, body: { ...order, destination: { fiat_account_id } } };
  expect((await call(sandbox, 'createFiatPayout', plain)).body.destination).toEqual({ fiat_account_id });
  expect(await railsOfEvents()).toEqual([...rails, 'ach']);
  for (const [id, payment_rail] of [
    [fiat_account_id, 'sepa'],
    [accountId, 'wire'],
    [accountId, 'swift'],
  ] as const) {
    const destination = { fiat_account_id: id, payment_rail };
    expect(
      await refusal(sandbox, 'createFiatPayout', { path, body: { ...order, destination } }),
    ).toMatchObject({
      ...{
        status: 400,
        body: { code: 'invalid_data', error: expect.stringContaining('/destination/payment_rail') },
      },
    });
  }
});

test('the app keeps a fee from 0 to below 100 percent', async () => {
  const { path, body: order } = payout('10');
  const pays = (fee: unknown) => ({ path, body: { ...order, developer_fee_percent: fee as string } });
  for (const fee of ['0', '0.0', '1.5', '88']) {
    const { body } = await call(sandbox, 'createFiatPayout', pays(fee));
    expect(body.developer_fee_percent).toBe(fee);
    expect(await actionOf(body)).toMatchObject({ developer_fee_percent: fee });
  }
  for (const fee of ['100', '-1', '1.', '.5', '1e1', ' 1', '1.5%', '', '1.5\n', 1.5, null]) {
    expect(await refusal(sandbox, 'createFiatPayout', pays(fee))).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringMatching(/developer_fee_percent/) },
    });
  }
});

test.each([
  ['processed', 'succeeded', undefined],
  ['returned', 'failed', 'The payout provider gave the deposit back: the bank returned the payment.'],
  ['error', 'failed', 'The payout provider did not pay: the provider could not pay.'],
])('a payout in review that a tester decides as %s has %s', async (outcome, status, message) => {
  const { body: begun } = await call(sandbox, 'createFiatPayout', payout());
  await ticks(4);
  expect((await actionOf(begun)).status).toBe('pending');
  expect(await control(sandbox, `/payouts/${begun.id}`, { outcome })).toMatchObject({
    status: 200,
    body: { wallet_action_id: begun.id, outcome },
  });
  await ticks(5);
  const ended = await actionOf(begun);
  expect(ended.status).toBe(status);
  expect((ended as PayoutResponse).failure_reason?.message).toBe(message);
  expect(await control(sandbox, `/payouts/${begun.id}`, { outcome })).toMatchObject({
    status: 400,
    body: { code: 'invalid_state' },
  });
});

test('a payout is settled by one advance of the clock, also beside one in review', async () => {
  const { body: inReview } = await call(sandbox, 'createFiatPayout', payout());
  const { body: own } = await call(sandbox, 'createUserExternalFiatAccount', {
    path: { user_id },
    body: {
      provider: 'bridge',
      environment: 'sandbox',
      account_owner_name: 'Alice Example',
      currency: 'eur',
      account: { type: 'iban', account_number: 'DE89370400440532013000', bic: 'COBADEFFXXX', country: 'DEU' },
    },
  });
  const plan = payout();
  const destination = { fiat_account_id: own.external_fiat_account.id };
  const { body: begun } = await call(sandbox, 'createFiatPayout', {
    ...plan,
    body: { ...plan.body, destination },
  });
  const startMs = sandbox.clock.now();
  await control(sandbox, '/clock', { advance_ms: 86_400_000 }, 'PUT');
  const ended = await actionOf(begun);
  expect(ended.status).toBe('succeeded');
  expect(sandbox.clock.now()).toBe(startMs + 86_400_000);
  expect((await actionOf(inReview)).status).toBe('pending');
});

test('a payout is not found in another wallet, and an unknown one is not steered', async () => {
  expect((await control(sandbox, '/payouts/unknown', { outcome: 'processed' })).status).toBe(404);
  const elsewhere = { ...payout(), path: { wallet_id: 'unknown' } };
  expect(await refusal(sandbox, 'createFiatPayout', elsewhere)).toMatchObject({ status: 404 });
});

test('a deposit that would revert is refused before anything is signed', async () => {
  const plan = payout('1');
  const asset = { asset: 'eth', chain: 'base', amount: '1' };
  // All of the ether, which leaves nothing for gas.
  const answer = await refusal(sandbox, 'createFiatPayout', {
    ...plan,
    body: { ...plan.body, source: asset },
  });
  expect(answer.status).toBe(400);
  expect(['insufficient_funds', 'transaction_execution_failure']).toContain(answer.body.code);
});
