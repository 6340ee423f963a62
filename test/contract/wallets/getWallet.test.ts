import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const notFound = { status: 404, body: { error: 'Wallet not found' } };

test('a wallet is found by its id and by its external id', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_acme-ethereum' } });
  expect(wallet).toMatchObject({
    external_id: 'acme-ethereum',
    display_name: 'Acme',
    chain_type: 'ethereum',
  });
  expect((await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } })).body).toEqual(wallet);
});

test('an absent wallet cannot be distinguished from one of another app', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', external_id: 'mine' },
  });
  const other = { ...sandbox, ...(await makeApp(sandbox)) };
  for (const wallet_id of ['z'.repeat(24), 'ext_wal_nobodys', 'ext_wal_']) {
    expect(await refusal(sandbox, 'getWallet', { path: { wallet_id } })).toEqual(notFound);
  }
  for (const wallet_id of [wallet.id, 'ext_wal_mine']) {
    expect(await refusal(other, 'getWallet', { path: { wallet_id } })).toEqual(notFound);
  }
});

test('an archived wallet is returned only on request', async () => {
  await using sandbox = await startSandbox();
  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  const { body: archived } = await call(sandbox, 'archiveWallet', { path });
  expect(await refusal(sandbox, 'getWallet', { path })).toEqual(notFound);
  expect(await refusal(sandbox, 'getWallet', { path, query: { include_archived: false } })).toEqual(notFound);
  expect((await call(sandbox, 'getWallet', { path, query: { include_archived: true } })).body).toEqual(
    archived,
  );
});

async function makeApp(sandbox: Awaited<ReturnType<typeof startSandbox>>) {
  const { body, statusCode } = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/_sandbox/apps',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Globex' }),
  });
  expect(statusCode).toBe(200);
  const { id, secret } = (await body.json()) as { id: string; secret: string };
  return { appId: id, appSecret: secret };
}
