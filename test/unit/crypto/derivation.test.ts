import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync, entropyToMnemonic as phraseOf } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  deriveEd25519,
  deriveSecp256k1,
  InvalidHdPathError,
  parseHdPath,
} from '../../../src/engine/crypto/bip32.ts';
import {
  entropyToMnemonic,
  InvalidMnemonicError,
  mnemonicToEntropy,
  mnemonicToSeed,
} from '../../../src/engine/crypto/bip39.ts';
import { bytesToHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import { readVectors } from '../signing/vectors.ts';

describe('BIP-39', () => {
  test.each(readVectors('derivation', 'bip39'))(
    'BIP-39: $source',
    async ({ entropy, mnemonic, passphrase, seed }) => {
      expect(entropyToMnemonic(hexToBytes(entropy))).toBe(mnemonic);
      expect(bytesToHex(mnemonicToEntropy(mnemonic))).toBe(entropy);
      expect(bytesToHex(await mnemonicToSeed(mnemonic, passphrase))).toBe(seed);
    },
  );

  test('random phrases of every length give the seed that @scure/bip39 gives', async () => {
    for (const length of [16, 20, 24, 28, 32]) {
      const mnemonic = entropyToMnemonic(new Uint8Array(length).fill(length));
      expect(mnemonic.split(' ')).toHaveLength((length / 4) * 3);
      expect(await mnemonicToSeed(mnemonic)).toEqual(new Uint8Array(mnemonicToSeedSync(mnemonic)));
    }
  });

  test('random entropy of every length gives the phrase that @scure/bip39 gives', async () => {
    for (const length of [16, 20, 24, 28, 32]) {
      const entropy = fc.uint8Array({ minLength: length, maxLength: length });
      await fc.assert(
        fc.property(entropy, (bytes) => entropyToMnemonic(bytes) === phraseOf(bytes, wordlist)),
        { numRuns: 40 },
      );
    }
    expect(() => entropyToMnemonic(new Uint8Array(15))).toThrow(RangeError);
  });

  test('white space around and between words does not matter', async () => {
    const phrase = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
    const spaced = `  ${phrase.replaceAll(' ', '\n ')}\t`;
    expect(await mnemonicToSeed(spaced)).toEqual(await mnemonicToSeed(phrase));
  });

  test.each([
    ['a wrong checksum', 'abandon '.repeat(12).trim()],
    ['eleven words', 'abandon '.repeat(11).trim()],
    ['a word that is not in the list', `${'abandon '.repeat(11)}custos`],
    ['nothing', ''],
  ])('BIP-39: refuses a phrase with %s and does not repeat it', async (_what, phrase) => {
    const refusal = await mnemonicToSeed(phrase).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidMnemonicError);
    expect(String(refusal)).not.toContain('abandon');
  });
});

describe('BIP-32', () => {
  test.each(readVectors('derivation', 'bip32'))('BIP-32: $source $path', ({ seed, path, secret }) => {
    expect(bytesToHex(deriveSecp256k1(hexToBytes(seed), path))).toBe(secret);
  });

  test('random seeds and paths give the secret that @scure/bip32 gives', async () => {
    const step = fc
      .tuple(fc.nat({ max: 2 ** 31 - 1 }), fc.boolean())
      .map(([n, hard]) => `/${n}${hard ? "'" : ''}`);
    await fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 64 }),
        fc.array(step, { minLength: 1, maxLength: 4 }),
        (seed, steps) => {
          const path = `m${steps.join('')}`;
          expect(deriveSecp256k1(seed, path)).toEqual(HDKey.fromMasterSeed(seed).derive(path).privateKey);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe('SLIP-10', () => {
  test.each(readVectors('derivation', 'slip10'))('SLIP-10: $source $path', ({ seed, path, secret }) => {
    expect(bytesToHex(deriveEd25519(hexToBytes(seed), path))).toBe(secret);
  });

  test('SLIP-10: refuses a step that is not hardened', () => {
    expect(() => deriveEd25519(new Uint8Array(32), "m/44'/501'/0")).toThrow(InvalidHdPathError);
  });
});

describe('derivation paths', () => {
  test('derivation paths are read step by step', () => {
    expect(parseHdPath("m/44'/60'/0'/0/7")).toEqual([0x8000002c, 0x8000003c, 0x80000000, 0, 7]);
    expect(parseHdPath('m')).toEqual([]);
    expect(parseHdPath("M'/1'")).toEqual([0x80000001]);
  });

  test.each([
    "44'/60'",
    'm/',
    'm/x',
    'm/-1',
    'm/1"',
    'm//1',
    'm/2147483648',
    "m/2147483648'",
    `m${'/0'.repeat(256)}`,
  ])('derivation paths: refuses `%s`', (path) => {
    expect(() => parseHdPath(path)).toThrow(InvalidHdPathError);
  });
});
