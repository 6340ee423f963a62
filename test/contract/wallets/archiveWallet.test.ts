import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { call, refusal } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const nowMs = Date.UTC(2026, 0, 1);
const path = { wallet_id: 'ext_wal_acme-ethereum' };
const notFound = { status: 404, body: { error: 'Wallet not found' } };

test('an archived wallet is shown unchanged with the time, and can no longer be used', async () => {
  await using sandbox = await startSandbox();
  const { body: before } = await call(sandbox, 'getWallet', { path });
  const { body: archived } = await call(sandbox, 'archiveWallet', { path });
  expect(archived).toEqual({ ...before, archived_at: nowMs });

  const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  expect(await refusal(sandbox, 'archiveWallet', { path })).toEqual(notFound);
  expect(await refusal(sandbox, 'walletRpc', { path, body: message })).toEqual(notFound);
  expect(await refusal(sandbox, 'updateWallet', { path, body: { display_name: 'Late' } })).toEqual(notFound);
  const entity = { type: 'user', id: 'did:service:cunknown' };
  expect(await refusal(sandbox, 'assignWalletEntity', { path, body: entity })).toEqual(notFound);
});

test('the event is recorded with the change', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'archiveWallet', { path });
  const events = await sandbox.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select(['id', 'app_id', 'type', 'payload', 'resource_id', 'created_at_ms'])
    .where('type', '=', 'wallet.archived')
    .execute();
  expect(events.map((event) => ({ ...event, payload: JSON.parse(event.payload) }))).toEqual([
    {
      id: expect.stringMatching(/^msg_[a-z][0-9a-z]{23}$/),
      app_id: sandbox.appId,
      type: 'wallet.archived',
      payload: {
        type: 'wallet.archived',
        wallet_id: wallet.id,
        wallet_address: wallet.address,
        chain_type: 'ethereum',
        archived_at: nowMs / 1000,
      },
      resource_id: wallet.id,
      created_at_ms: nowMs,
    },
  ]);
});

describe('the app setting `archive_requires_owner`', () => {
  const owner = { public_key: aliceKey.publicKey };
  const refusedCode = async (sandbox: TestSandbox, walletId: string, signWith: string[]) =>
    (await refusal(sandbox, 'archiveWallet', { path: { wallet_id: walletId } }, { signWith })).body.code;

  test('requires the owner, and no signature for a wallet without one', async () => {
    await using sandbox = await startSandbox();
    await configureApp(sandbox, { archive_requires_owner: true });
    const signerId = (await call(sandbox, 'createKeyQuorum', { body: { public_keys: [bobKey.publicKey] } }))
      .body.id;
    const { body: wallet } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner, additional_signers: [{ signer_id: signerId }] },
    });
    expect(await refusedCode(sandbox, wallet.id, [])).toBe('missing_or_empty_authorization_header');
    expect(await refusedCode(sandbox, wallet.id, [bobKey.privateKey])).toBe(
      'zero_correct_authorization_signatures',
    );
    const signed = { signWith: [aliceKey.privateKey] };
    const { body } = await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } }, signed);
    expect(body.archived_at).toBe(nowMs);
    const { body: free } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await call(sandbox, 'archiveWallet', { path: { wallet_id: free.id } });
  });

  test('is off in a sandbox, as published, and accepts only true or false', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', owner } });
    await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
    await expect(configureApp(sandbox, { archive_requires_owner: 'yes' })).rejects.toThrow(
      '/settings/archive_requires_owner: expected true or false',
    );
  });
});
