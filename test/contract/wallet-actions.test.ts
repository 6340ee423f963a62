import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TransferActionResponse } from '../../src/generated/schemas.ts';
import { call, refusal } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { asOtherApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const path = { wallet_id: 'ext_wal_acme-ethereum' };
const nowhere = '00000000-0000-4000-8000-000000000000';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  const { body } = await call(sandbox, 'getWallet', { path });
  await fund(sandbox, body.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
});

async function transfer(amount: string): Promise<TransferActionResponse> {
  const body = { source: { asset: 'eth', chain: 'base', amount }, destination: { address: receiver } };
  return (await call(sandbox, 'transferFromWallet', { path, body })).body;
}

test('pages go from the newest action to the oldest, without steps', async () => {
  const made: TransferActionResponse[] = [];
  for (const amount of ['0.1', '0.2', '0.3']) {
    sandbox.clock.advance(1);
    made.unshift(await transfer(amount));
  }
  const first = await call(sandbox, 'listWalletActions', { path, query: { limit: 2 } });
  expect(first.body).toEqual({ data: made.slice(0, 2), next_cursor: made[1]?.id });
  const second = await call(sandbox, 'listWalletActions', { path, query: { limit: 2, cursor: made[1]!.id } });
  expect(second.body).toEqual({ data: made.slice(2), next_cursor: null });
  const transfers = await call(sandbox, 'listWalletActions', { path, query: { type: 'transfer' } });
  expect(transfers.body.data).toEqual(made);
  const swaps = await call(sandbox, 'listWalletActions', { path, query: { type: 'swap' } });
  expect(swaps.body).toEqual({ data: [], next_cursor: null });
  for (const cursor of [nowhere, 'X', '\0']) {
    const { status, body } = await refusal(sandbox, 'listWalletActions', { path, query: { cursor } });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
  }
});

test('an action is found by its id and the id of its wallet, archived or not, and of no other wallet', async () => {
  const made = await transfer('0.1');
  const action_id = made.id;
  expect((await call(sandbox, 'getWalletAction', { path: { ...path, action_id } })).body).toEqual(made);
  const absent = { status: 404, body: { error: 'Wallet action not found' } };
  const elsewhere = { wallet_id: 'ext_wal_alice', action_id };
  expect(await refusal(sandbox, 'getWalletAction', { path: elsewhere })).toEqual(absent);
  expect(await refusal(sandbox, 'getWalletAction', { path: { ...path, action_id: nowhere } })).toEqual(
    absent,
  );
  const other = await asOtherApp(sandbox);
  expect(await refusal(other, 'getWalletAction', { path: { ...path, action_id } })).toEqual({
    status: 404,
    body: { error: 'Wallet not found' },
  });
  await call(sandbox, 'archiveWallet', { path });
  expect((await call(sandbox, 'getWalletAction', { path: { ...path, action_id } })).body).toEqual(made);
});

test.each([
  [{ action_id: 'afaf' }, {}],
  [{ action_id: nowhere }, { include: 'everything' }],
])('%o with %o is refused', async (ids, query) => {
  const { status, body } = await refusal(sandbox, 'getWalletAction', { path: { ...path, ...ids }, query });
  expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
});
