import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox } from '../../support/sandbox.ts';

const path = { wallet_id: 'ext_wal_acme-ethereum' };
const day = 24 * 60 * 60 * 1000;

test('an app that sponsored nothing spent nothing', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'getWallet', { path });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const body = {
    source: { asset: 'eth', chain: 'base', amount: '0.1' },
    destination: { address: wallet.address },
  };
  // The wallet pays its gas itself.
  await call(sandbox, 'transferFromWallet', { path, body });
  const now = sandbox.clock.now();
  const query = {
    wallet_ids: [wallet.id, 'nobody'],
    start_timestamp: now - day,
    end_timestamp: now + day,
  };
  expect((await call(sandbox, 'getAppGasSpend', { query })).body).toEqual({ value: '0', currency: 'usd' });
});

test.each([
  [{ start_timestamp: 2, end_timestamp: 2 }, 'end_timestamp: expected a time after `start_timestamp`'],
  [{ start_timestamp: 0, end_timestamp: 30 * day + 1 }, 'end_timestamp: expected at most 30 days in all'],
  [{ start_timestamp: 0, end_timestamp: 2 ** 53 }, 'end_timestamp: must have the format unix-ms'],
])('%o is refused', async (span, error) => {
  await using sandbox = await startSandbox();
  const { status, body } = await refusal(sandbox, 'getAppGasSpend', {
    query: { wallet_ids: ['x'], ...span },
  });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error,
  });
});
