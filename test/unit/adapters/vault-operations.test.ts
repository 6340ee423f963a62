import { createVerify, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/entropy.ts';
import { localMasterKey } from '../../../src/adapters/vault/master-key-local.ts';
import { createMasterKeyVault } from '../../../src/adapters/vault/vault-master-key.ts';
import { createKeyVault } from '../../../src/adapters/vault/vault-operations.ts';
import * as bindings from '../../../src/domain/base/sealed-keys/seal-bindings.ts';
import type { SigningMethod, SigningTask } from '../../../src/signing/sign-with-key.ts';

const masterKey = localMasterKey('test', randomBytes(32), systemEntropy);
const vault = createKeyVault({ masterKeys: [masterKey], entropy: systemEntropy });
const envelopes = createMasterKeyVault({ masterKeys: [masterKey], entropy: systemEntropy });
const row = { id: 'row', app_id: 'acme', chain_type: 'ethereum' };
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe('what leaves the vault as it is', () => {
  test.each([
    ['webhook secrets', bindings.webhookSecretBinding(row)],
    ['payment instructions', bindings.depositInstructionsBinding(row)],
    ['codes of test accounts', bindings.testCodeBinding('acme', 'account')],
    ['the known value', bindings.masterKeyCheckBinding],
  ])('%s', async (_, binding) => {
    expect(text(await vault.open(await vault.seal(Buffer.from('secret'), binding), binding))).toBe('secret');
  });

  test.each([
    ["wallets' keys", bindings.walletKeyBinding(row)],
    ['keys of imports', bindings.walletImportBinding(row)],
    ["apps' signing keys", bindings.signingKeyBinding(row)],
    ['keys for fingerprints', bindings.fingerprintKeyBinding(row)],
  ])('not %s', async (_, binding) => {
    await expect(vault.seal(Buffer.from('secret'), binding)).rejects.toThrow('callers seal none');
    const sealed = await envelopes.seal(Buffer.from('secret'), binding);
    await expect(vault.open(sealed, binding)).rejects.toThrow('does not leave the vault');
  });
});

test('a key signs only as its purpose says', async () => {
  const [wallet, tokens] = [bindings.walletKeyBinding(row), bindings.signingKeyBinding(row)];
  const { sealed: walletKey } = await vault.createWalletKey(wallet);
  const { sealed: tokenKey, publicKey } = await vault.createTokenKey(tokens);
  const task = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
  await expect(vault.signToken(walletKey, wallet, 'hello')).rejects.toThrow('expected the purpose');
  await expect(vault.signWithWallet(tokenKey, tokens, task)).rejects.toThrow(
    "expected the purpose of a wallet's key",
  );
  await expect(vault.fingerprint(walletKey, wallet, 'hello')).rejects.toThrow('expected the purpose');
  const signature = await vault.signToken(tokenKey, tokens, 'hello');
  const key = { key: publicKey, format: 'der', type: 'spki', encoding: 'base64' } as const;
  const verified = createVerify('sha256')
    .update('hello')
    .verify({ ...key, key: Buffer.from(publicKey, 'base64'), dsaEncoding: 'ieee-p1363' }, signature);
  expect(verified).toBe(true);
});

test('inherited members of the table of methods sign nothing: some would return the key', async () => {
  const binding = bindings.walletKeyBinding(row);
  const { sealed } = await vault.createWalletKey(binding);
  for (const method of ['constructor', 'valueOf', 'toString', '__proto__', '']) {
    const task = { method: method as SigningMethod, params: {} } as SigningTask;
    await expect(vault.signWithWallet(sealed, binding, task)).rejects.toThrow('a method that signs');
  }
});
