import { createHash } from 'node:crypto';
import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { describe, expect, test } from 'vitest';
import { deriveEd25519 } from '../../../src/engine/crypto/bip32.ts';
import { entropyToMnemonic, mnemonicToSeed } from '../../../src/engine/crypto/bip39.ts';
import { ed25519PublicKey, ed25519Sign } from '../../../src/engine/crypto/ed25519.ts';
import { base58ToBytes, bytesTo0xHex, concatBytes, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import { nobleBackend } from '../../../src/engine/crypto/secp256k1.ts';
import {
  type ChainType,
  chains,
  derivePrivateKey,
  deriveWallet,
  generatePrivateKey,
  isChainType,
  requireRpcMethod,
  rpcMethodsOf,
} from '../../../src/engine/signing/chains.ts';
import { rawSign } from '../../../src/engine/signing/sign-with-key.ts';
import {
  InvalidFieldError,
  InvalidPayloadError,
  InvalidPrivateKeyError,
  UnsupportedMethodError,
} from '../../../src/engine/signing/signing-errors.ts';
import { privateKeyForExport, privateKeyFromImport } from '../../../src/engine/signing/wallet-key.ts';

const secret = new Uint8Array(32).fill(3);
const chainTypes = Object.keys(chains) as ChainType[];
const ed25519Chains = chainTypes.filter((chainType) => chains[chainType].curve === 'ed25519');
const secp256k1Chains = chainTypes.filter((chainType) => chains[chainType].curve === 'secp256k1');
const order = hexToBytes('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141');

test('the table has the sixteen chain types of the contract', () => {
  expect(chainTypes).toEqual([
    'ethereum',
    'solana',
    'cosmos',
    'stellar',
    'sui',
    'aptos',
    'movement',
    'tron',
    'bitcoin-segwit',
    'bitcoin-taproot',
    'pearl',
    'near',
    'ton',
    'starknet',
    'xrpl',
    'spark',
  ]);
  expect(isChainType('pearl')).toBe(true);
  expect(isChainType('bitcoin')).toBe(false);
  expect(isChainType('toString')).toBe(false);
});

describe('rpc methods', () => {
  test('a method of another chain type lists the supported ones', () => {
    expect(() => requireRpcMethod('solana', 'personal_sign')).toThrow(
      new UnsupportedMethodError('personal_sign', 'solana', [
        'signMessage',
        'signTransaction',
        'signAndSendTransaction',
        'exportPrivateKey',
        'exportSeedPhrase',
      ]),
    );
    expect(() => requireRpcMethod('cosmos', 'signMessage')).toThrow(
      'expected a method of `cosmos` (`exportPrivateKey`, `exportSeedPhrase`), got `signMessage`',
    );
  });

  test('every chain accepts its own methods', () => {
    for (const chainType of chainTypes) {
      for (const method of rpcMethodsOf(chainType))
        expect(() => requireRpcMethod(chainType, method)).not.toThrow();
    }
    expect(rpcMethodsOf('movement')).toContain('aptos_signTransaction');
  });
});

describe('keys', () => {
  test('wallets of one phrase differ by index and can be derived again', async () => {
    const mnemonic = entropyToMnemonic(secret);
    for (const chainType of chainTypes) {
      const [first, second, again] = await Promise.all(
        [0, 1, 1].map(async (index) =>
          deriveWallet(chainType, await derivePrivateKey(chainType, { mnemonic }, index)),
        ),
      );
      expect(second).toEqual(again);
      expect(second?.address).not.toBe(first?.address);
    }
  });

  test('the entropy of a phrase represents the phrase', async () => {
    const fromEntropy = await derivePrivateKey('ethereum', { entropy: secret });
    expect(fromEntropy).toEqual(await derivePrivateKey('ethereum', { mnemonic: entropyToMnemonic(secret) }));
    expect(secret).toEqual(new Uint8Array(32).fill(3));
  });

  // Our reading of the two strategies that the contract names.
  test('solana: ENTROPY_TO_MNEMONIC_TO_SEED and ENTROPY_TO_SEED', async () => {
    const path = "m/44'/501'/0'/0'";
    const phraseSeed = await mnemonicToSeed(entropyToMnemonic(secret));
    expect(await derivePrivateKey('solana', { entropy: secret })).toEqual(deriveEd25519(phraseSeed, path));
    expect(await derivePrivateKey('solana', { seed: secret })).toEqual(deriveEd25519(secret, path));
    expect(secret).toEqual(new Uint8Array(32).fill(3));
  });

  test.each(secp256k1Chains)(
    '%s refuses zero, the order of the curve and other lengths',
    async (chainType) => {
      for (const bytes of [
        new Uint8Array(32),
        order,
        new Uint8Array(31).fill(1),
        new Uint8Array(64).fill(1),
      ]) {
        await expect(deriveWallet(chainType, bytes)).rejects.toThrow(InvalidPrivateKeyError);
        await expect(generatePrivateKey(chainType, bytes)).rejects.toThrow(InvalidPrivateKeyError);
      }
    },
  );

  test('starknet grinds any 32 bytes to a secret and refuses ungrounded ones', async () => {
    const ground = await generatePrivateKey('starknet', new Uint8Array(32).fill(0xff));
    expect((await deriveWallet('starknet', ground)).address).toMatch(/^0x[1-9a-f][0-9a-f]{0,63}$/);
    await expect(deriveWallet('starknet', new Uint8Array(32).fill(0xff))).rejects.toThrow(
      InvalidPrivateKeyError,
    );
  });

  test('a generated secret is a copy, so that the random bytes can be wiped', async () => {
    const random = secret.slice();
    const generated = await generatePrivateKey('ethereum', random);
    random.fill(0);
    expect(generated).toEqual(secret);
  });
});

describe('private keys as they are imported and exported', () => {
  test.each(chainTypes.filter((chainType) => chainType !== 'solana' && chainType !== 'starknet'))(
    '%s: 32 bytes in, 64 hex digits out',
    async (chainType) => {
      expect(await privateKeyFromImport(chainType, secret)).toEqual(secret);
      expect(Buffer.from(privateKeyForExport(chainType, secret)).toString()).toBe('03'.repeat(32));
      await expect(privateKeyFromImport(chainType, new Uint8Array(64).fill(3))).rejects.toThrow(
        InvalidPrivateKeyError,
      );
    },
  );

  test('solana: 32 or 64 bytes in, base58 of 64 bytes out', async () => {
    const pair = concatBytes(secret, ed25519PublicKey(secret));
    expect(await privateKeyFromImport('solana', pair)).toEqual(secret);
    expect(await privateKeyFromImport('solana', secret)).toEqual(secret);
    expect(base58ToBytes(Buffer.from(privateKeyForExport('solana', secret)).toString())).toEqual(pair);
    const wrongKey = concatBytes(secret, new Uint8Array(32));
    await expect(privateKeyFromImport('solana', wrongKey)).rejects.toThrow(
      'to be the public key of the first 32',
    );
  });
});

describe('raw_sign', () => {
  const digest = createHash('sha256').update('custos').digest();
  const hash = bytesTo0xHex(digest);

  test.each(['cosmos', 'bitcoin-segwit', 'xrpl', 'tron'] as const)('%s gives r || s', async (chainType) => {
    const { compact } = nobleBackend.sign(digest, secret);
    expect(await rawSign(chainType, secret, { hash })).toBe(bytesTo0xHex(compact));
  });

  test('ethereum gives r || s || v', async () => {
    const { compact, recoveryId } = nobleBackend.sign(digest, secret);
    const v = Uint8Array.of(27 + recoveryId);
    expect(await rawSign('ethereum', secret, { hash })).toBe(bytesTo0xHex(concatBytes(compact, v)));
  });

  test.each(ed25519Chains)('%s signs the bytes themselves, of any length but none', async (chainType) => {
    for (const length of [1, 32, 1000]) {
      const message = new Uint8Array(length).fill(5);
      const signature = await rawSign(chainType, secret, { hash: bytesTo0xHex(message) });
      expect(signature).toBe(bytesTo0xHex(ed25519Sign(message, secret)));
    }
    await expect(rawSign(chainType, secret, { hash: '0x' })).rejects.toThrow(InvalidPayloadError);
  });

  test.each(secp256k1Chains.filter((chainType) => chainType !== 'spark'))(
    '%s refuses a digest that is not 32 bytes',
    async (chainType) => {
      for (const bad of ['0x', `0x${'11'.repeat(31)}`, `0x${'11'.repeat(33)}`]) {
        const refusal = await rawSign(chainType, secret, { hash: bad }).catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(InvalidPayloadError);
        expect(refusal).toMatchObject({ field: '/hash' });
      }
    },
  );

  test('starknet refuses values that are not felts below 2^251', async () => {
    const ground = await generatePrivateKey('starknet', secret);
    for (const bad of ['0x', `0x08${'00'.repeat(31)}`, `0x${'00'.repeat(33)}`]) {
      await expect(rawSign('starknet', ground, { hash: bad })).rejects.toThrow(InvalidPayloadError);
    }
    const [padded, short] = await Promise.all(
      ['0x05d9', '0x5d9'].map((felt) => rawSign('starknet', ground, { hash: felt })),
    );
    expect(padded).toBe(short);
  });

  test('spark signs only with its own methods', async () => {
    await expect(rawSign('spark', secret, { hash })).rejects.toThrow(UnsupportedMethodError);
  });

  test.each([
    ['keccak256', keccak_256(Buffer.from('żółw'))],
    ['sha256', createHash('sha256').update('żółw').digest()],
    ['blake2b256', blake2b(Buffer.from('żółw'), { dkLen: 32 })],
  ] as const)('hashes bytes with %s before it signs', async (hash_function, expected) => {
    const texts = [
      ['utf-8', 'żółw'],
      ['hex', 'c5bcc3b3c58277'],
      ['hex', '0xC5BCC3B3C58277'],
      ['base64', 'xbzDs8WCdw=='],
    ] as const;
    for (const [encoding, bytes] of texts) {
      const signature = await rawSign('cosmos', secret, { bytes, encoding, hash_function });
      expect(signature).toBe(bytesTo0xHex(nobleBackend.sign(expected, secret).compact));
    }
  });

  test.each([
    ['/hash', { hash: 'ab' }],
    ['/hash', { hash: '0xabc' }],
    ['/bytes', { bytes: 'abc', encoding: 'hex', hash_function: 'sha256' }],
    ['/bytes', { bytes: 'YQ', encoding: 'base64', hash_function: 'sha256' }],
    ['/bytes', { bytes: '\ud800', encoding: 'utf-8', hash_function: 'sha256' }],
  ] as const)('raw_sign: names %s if it is invalid: %o', async (field, params) => {
    const refusal = await rawSign('cosmos', secret, params).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidFieldError);
    expect(refusal).toMatchObject({ field });
  });
});
