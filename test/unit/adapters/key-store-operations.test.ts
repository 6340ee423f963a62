import { createVerify, randomBytes } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { privateKeyToAddress } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import * as bindings from '../../../src/domain/base/sealed-keys/sealed-keys.ts';
import { hpkeRecipientFromSeed, sealHpke } from '../../../src/engine/crypto/hpke.ts';
import type { SigningMethod, SigningTask } from '../../../src/engine/signing/sign-with-key.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { createMasterKeyEnvelopes, localMasterKey } from '../../../src/keys/master-keys.ts';

const masterKey = localMasterKey('test', randomBytes(32), systemEntropy);
const keyStore = createKeyStore({ masterKeys: [masterKey], entropy: systemEntropy });
const envelopes = createMasterKeyEnvelopes({ masterKeys: [masterKey], entropy: systemEntropy });
const row = { id: 'row', app_id: 'acme', chain_type: 'ethereum' };
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe('what leaves the key store as it is', () => {
  test.each([
    ['webhook secrets', bindings.webhookSecretBinding(row)],
    ['payment instructions', bindings.depositInstructionsBinding(row)],
    ['codes of test accounts', bindings.testCodeBinding('acme', 'account')],
    ['the known value', bindings.masterKeyCheckBinding],
  ])('what leaves the key store as it is: %s', async (_, binding) => {
    expect(text(await keyStore.open(await keyStore.seal(Buffer.from('secret'), binding), binding))).toBe(
      'secret',
    );
  });

  test.each([
    ["wallets' keys", bindings.walletKeyBinding(row)],
    ['keys of imports', bindings.walletImportBinding(row)],
    ["apps' signing keys", bindings.signingKeyBinding(row)],
    ['keys for fingerprints', bindings.fingerprintKeyBinding(row)],
  ])('what leaves the key store as it is: not %s', async (_, binding) => {
    await expect(keyStore.seal(Buffer.from('secret'), binding)).rejects.toThrow('callers cannot seal one');
    const sealed = await envelopes.seal(Buffer.from('secret'), binding);
    await expect(keyStore.open(sealed, binding)).rejects.toThrow('does not leave the key store');
  });
});

test('a key signs only as its purpose says', async () => {
  const [wallet, tokens] = [bindings.walletKeyBinding(row), bindings.signingKeyBinding(row)];
  const { sealed: walletKey } = await keyStore.createWalletKey(wallet);
  const { sealed: tokenKey, publicKey } = await keyStore.createTokenKey(tokens);
  const task = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
  await expect(keyStore.signToken(walletKey, wallet, 'hello')).rejects.toThrow('expected the purpose');
  await expect(keyStore.signWithWallet(tokenKey, tokens, task)).rejects.toThrow(
    "expected the purpose of a wallet's key",
  );
  await expect(keyStore.fingerprint(walletKey, wallet, 'hello')).rejects.toThrow('expected the purpose');
  const signature = await keyStore.signToken(tokenKey, tokens, 'hello');
  const key = { key: publicKey, format: 'der', type: 'spki', encoding: 'base64' } as const;
  const verified = createVerify('sha256')
    .update('hello')
    .verify({ ...key, key: Buffer.from(publicKey, 'base64'), dsaEncoding: 'ieee-p1363' }, signature);
  expect(verified).toBe(true);
});

describe('the key of an import', () => {
  const [wallet, begun] = [bindings.walletKeyBinding(row), bindings.walletImportBinding(row)];
  const asWallet = [wallet, begun, { ...begun, purpose: 'wallet-import-solana' }];
  const recipient = new Uint8Array(Buffer.from(p256.getPublicKey(randomBytes(32), false)));
  const what = { form: 'private-key', recipient } as const;
  const task = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;

  test('the key of an import is not a wallet: it neither signs nor is exported', async () => {
    const { sealed } = await keyStore.createImportKey(begun);
    for (const binding of asWallet) {
      await expect(keyStore.exportWalletKey(sealed, binding, what)).rejects.toThrow();
      await expect(keyStore.signWithWallet(sealed, binding, task)).rejects.toThrow();
      await expect(keyStore.open(sealed, binding)).rejects.toThrow('does not leave the key store');
      await expect(
        keyStore.sealUnderAuthority(sealed, binding, { owner: null, signers: [], isAutomated: false }),
      ).rejects.toThrow();
    }
  });

  // One of some 2,200 random keys begins as a wallet's secret does.
  test.each([0, 16])(
    'of an earlier version is none either, if it begins with %i bytes of a phrase',
    async (size) => {
      const key = Uint8Array.of(1, size, ...randomBytes(30));
      const sealed = await envelopes.seal(key, wallet);
      await expect(keyStore.exportWalletKey(sealed, wallet, what)).rejects.toThrow('another length');
      await expect(keyStore.signWithWallet(sealed, wallet, task)).rejects.toThrow('another length');
    },
  );

  test('of an earlier version decrypts its import, also under another master key', async () => {
    const privateKey = randomBytes(32);
    const pair = await hpkeRecipientFromSeed(randomBytes(32));
    const sealed = await envelopes.seal(pair.privateKeyBytes, wallet);
    const seeds = { recipientPublicKeyBytes: pair.publicKeyBytes, ephemeralSeed: randomBytes(32) };
    const sent = await sealHpke({ ...seeds, plaintext: privateKey });
    const submitted = { ...sent, parameters: {}, form: 'private-key' } as const;
    const expected = privateKeyToAddress(`0x${privateKey.toString('hex')}`);
    for (const binding of [begun, wallet]) {
      for (const each of [sealed, await keyStore.rewrap(sealed, begun)]) {
        const imported = await keyStore.importWalletKey(each, binding, submitted, wallet);
        expect(imported.address).toBe(expected);
      }
    }
  });

  test('the key of an import is not that of a wallet', async () => {
    const { sealed } = await keyStore.createWalletKey(wallet);
    const submitted = {
      ...({ form: 'private-key', parameters: {} } as const),
      ...{ encapsulatedKey: recipient, ciphertext: randomBytes(48) },
    };
    for (const binding of [begun, wallet]) {
      await expect(keyStore.importWalletKey(sealed, binding, submitted, wallet)).rejects.toThrow(
        'expected the key of an import',
      );
    }
  });
});

test('inherited members of the table of methods sign nothing: some would return the key', async () => {
  const binding = bindings.walletKeyBinding(row);
  const { sealed } = await keyStore.createWalletKey(binding);
  for (const method of ['constructor', 'valueOf', 'toString', '__proto__', '']) {
    const task = { method: method as SigningMethod, params: {} } as SigningTask;
    await expect(keyStore.signWithWallet(sealed, binding, task)).rejects.toThrow('a method that signs');
  }
});
