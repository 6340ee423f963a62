import { createPrivateKey, createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { acmeApp } from '../../mocks/apps.ts';
import { aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import { treasuryQuorum } from '../../mocks/key-quorums.ts';
import { spendingPolicy } from '../../mocks/policies.ts';
import { aliceUser, bobUser } from '../../mocks/users.ts';
import { acmeSolanaWallet, acmeWallet, aliceWallet, treasuryWallet } from '../../mocks/wallets.ts';
import { checkAppSettings } from '../../src/domain/access/apps/app-settings.ts';
import { requestValidators } from '../../src/generated/request-validators.js';

const bodies = [
  ['createUser', { aliceUser, bobUser }],
  ['createKeyQuorum', { treasuryQuorum }],
  ['createPolicy', { spendingPolicy }],
  ['createWallet', { acmeWallet, acmeSolanaWallet, aliceWallet, treasuryWallet }],
] as const;

test.each(bodies)('the seeds of %s are valid request bodies', (operation, seeds) => {
  const validate = requestValidators[operation].body;
  const faults = Object.entries(seeds).map(([name, body]) => [
    name,
    validate?.(body) ? [] : validate?.errors,
  ]);
  expect(faults).toEqual(Object.keys(seeds).map((name) => [name, []]));
});

test('each public key belongs to its private key', () => {
  for (const { privateKey, publicKey } of [aliceKey, bobKey, carolKey]) {
    const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
    const derived = createPublicKey(key).export({ format: 'der', type: 'spki' }).toString('base64');
    expect(derived).toBe(publicKey);
  }
});

test('the app has an id and settings as apps have them', () => {
  expect(acmeApp.id).toMatch(/^c[0-9a-z]{24}$/);
  const account = { ...acmeApp.testAccount, created_at_ms: 0, updated_at_ms: 0 };
  const defaults = { ids: { cuid: () => 'unused' }, nowMs: 0 };
  expect(checkAppSettings({ test_accounts: [acmeApp.testAccount] }, defaults)).toEqual({
    test_accounts: [account],
  });
});

test('the seeds have external ids that differ', () => {
  const ids = [acmeWallet, acmeSolanaWallet, aliceWallet, treasuryWallet].map((wallet) => wallet.external_id);
  expect(new Set(ids).size).toBe(ids.length);
});
