import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('an address is found in any letter case of its hex', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_acme-ethereum' } });
  const digits = wallet.address.slice(2);
  for (const address of [wallet.address, `0x${digits.toLowerCase()}`, `0x${digits.toUpperCase()}`]) {
    expect((await call(sandbox, 'getWalletByAddress', { body: { address } })).body).toEqual(wallet);
  }
  const { body: solana } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_acme-solana' } });
  const { address } = solana;
  expect((await call(sandbox, 'getWalletByAddress', { body: { address } })).body).toEqual(solana);
});

test('an unknown address, and that of an archived wallet, is not found', async () => {
  await using sandbox = await startSandbox();
  const notFound = { status: 404, body: { error: 'Wallet not found' } };
  const nobodys = `0x${'00'.repeat(20)}`;
  expect(await refusal(sandbox, 'getWalletByAddress', { body: { address: nobodys } })).toEqual(notFound);

  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  const { body: archived } = await call(sandbox, 'archiveWallet', { path });
  const { address } = archived;
  expect(await refusal(sandbox, 'getWalletByAddress', { body: { address } })).toEqual(notFound);
  const found = await call(sandbox, 'getWalletByAddress', { body: { address, include_archived: true } });
  expect(found.body).toEqual(archived);
});
