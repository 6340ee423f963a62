import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { call, control } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const caip2 = 'eip155:1';
const to = '0x1111111111111111111111111111111111111111';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
  await fund(sandbox, wallet.address, { chain: 'ethereum', asset: 'eth', rawAmount: 10n ** 18n });
});

/** Sends one wei and returns the id of the transaction. */
async function send(): Promise<string> {
  const { body } = await call(sandbox, 'walletRpc', {
    path: acme,
    body: { method: 'eth_sendTransaction', caip2, params: { transaction: { to, value: '0x1' } } },
  });
  return (body as { data: { transaction_id: string } }).data.transaction_id;
}

const steer = (id: string, effect: string) =>
  control(sandbox, 'POST', `/_sandbox/transactions/${id}`, { effect });
const stored = async (transaction_id: string) =>
  (await call(sandbox, 'getTransaction', { path: { transaction_id } })).body;
const received = async () => (await sandbox.chains.find(caip2)!.balances(to, [null]))[0];

async function pass(durationMs: number): Promise<void> {
  sandbox.clock.advance(durationMs);
  await sandbox.settle();
}

async function mine(): Promise<void> {
  await control(sandbox, 'POST', '/_sandbox/blocks', { chain: 'ethereum' });
  await pass(1000);
}

test.each([
  ['revert', 'execution_reverted'],
  ['replace', 'replaced'],
] as const)('to %s ends a pending transaction as %s and leaves others alone', async (effect, ending) => {
  const id = await send();
  expect(await steer(id, effect)).toEqual({
    status: 200,
    body: { transaction_id: id, transaction_hash: (await stored(id)).transaction_hash, effect },
  });
  const other = await send();
  await mine();
  expect([(await stored(id)).status, (await stored(other)).status]).toEqual([ending, 'confirmed']);
  expect(await received()).toBe(1n);
});

test('a dropped transaction is unknown to its chain until the server broadcasts it again', async () => {
  const id = await send();
  expect((await steer(id, 'drop')).status).toBe(200);
  expect(await steer(id, 'revert')).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  await control(sandbox, 'POST', '/_sandbox/blocks', { chain: 'ethereum' });
  expect(await received()).toBe(0n);
  await pass(60_000);
  await pass(60_000);
  expect((await stored(id)).status).toBe('confirmed');
  expect(await received()).toBe(1n);
});

test('only a transaction that no block includes can be steered', async () => {
  const id = await send();
  await mine();
  expect(await steer(id, 'drop')).toMatchObject({
    status: 400,
    body: { code: 'invalid_state', error: expect.stringContaining('`confirmed`') },
  });
  expect(await steer('unknown', 'drop')).toMatchObject({
    status: 404,
    body: { error: 'Transaction not found' },
  });
  expect(await steer(id, 'lose')).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
});
