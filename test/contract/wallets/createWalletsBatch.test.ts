import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('each wallet of a batch is created or refused independently, in order', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createWalletsBatch', {
    body: {
      wallets: [
        { chain_type: 'ethereum', external_id: 'first' },
        { chain_type: 'solana', external_id: 'first' },
        { chain_type: 'ethereum', owner_id: 'z'.repeat(24) },
        { chain_type: 'solana', display_name: 'Last' },
      ],
    },
  });
  expect(body.results).toEqual([
    {
      index: 0,
      success: true,
      wallet: expect.objectContaining({ chain_type: 'ethereum', external_id: 'first' }),
    },
    {
      index: 1,
      success: false,
      error: 'a wallet with the external id `first` already exists',
      code: 'resource_conflict',
    },
    {
      index: 2,
      success: false,
      error: 'Unable to find the specified key quorums for this app.',
      code: 'invalid_data',
    },
    {
      index: 3,
      success: true,
      wallet: expect.objectContaining({ chain_type: 'solana', display_name: 'Last' }),
    },
  ]);
  for (const result of body.results) {
    if (!result.success) continue;
    const { body: stored } = await call(sandbox, 'getWallet', { path: { wallet_id: result.wallet.id } });
    expect(stored).toEqual(result.wallet);
  }
});

test('a hundred wallets can be created at once, not more', async () => {
  await using sandbox = await startSandbox({ seedData: false });
  const wallets = Array.from({ length: 100 }, () => ({ chain_type: 'ethereum' as const }));
  const { body } = await call(sandbox, 'createWalletsBatch', { body: { wallets } });
  const addresses = body.results.map((result) => (result.success ? result.wallet.address : undefined));
  expect(new Set(addresses).size).toBe(100);
  expect((await call(sandbox, 'listWallets', {})).body.data).toHaveLength(100);

  const tooMany = await refusal(sandbox, 'createWalletsBatch', {
    body: { wallets: [...wallets, ...wallets] },
  });
  expect(tooMany).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  expect(await refusal(sandbox, 'createWalletsBatch', { body: { wallets: [] } })).toMatchObject({
    status: 400,
  });
});
