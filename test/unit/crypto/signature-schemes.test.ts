import { createHash } from 'node:crypto';
import { ed25519 as nobleEd25519 } from '@noble/curves/ed25519.js';
import { schnorr as nobleSchnorr } from '@noble/curves/secp256k1.js';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from '../../../src/crypto/ed25519.ts';
import { bytesToHex, hexToBytes } from '../../../src/crypto/encoding.ts';
import { schnorrSign, schnorrSignPortable, taggedHash } from '../../../src/crypto/schnorr.ts';
import {
  assertBackendsAgree,
  type EcBackend,
  nativeBackend,
  nobleBackend,
} from '../../../src/crypto/secp256k1.ts';
import { readVectors } from '../signing/vectors.ts';

const runs = process.env.TEST_LONG === '1' ? 10_000 : 300;
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
// Secrets from the whole range: the order of the curve is so near 2^256 that a random one is always below it.
const secrets = bytes32.filter((secret) => nobleBackend.isValidSecret(secret));

function native(): EcBackend {
  if (nativeBackend === undefined) throw new Error('no native secp256k1 for this machine');
  return nativeBackend;
}

const backends: [string, EcBackend][] = [
  ['native', native()],
  ['noble', nobleBackend],
];

describe.each(backends)('secp256k1 on the %s backend', (_name, backend) => {
  test.each(readVectors('signature-schemes', 'secp256k1'))('$source', ({ secret, message, compact }) => {
    const digest = createHash('sha256').update(message).digest();
    const signature = backend.sign(digest, hexToBytes(secret));
    expect(bytesToHex(signature.compact)).toBe(compact);
    const publicKey = backend.publicKey(hexToBytes(secret), false);
    expect(backend.recover(signature, digest)).toEqual(publicKey);
    expect(backend.verify(signature.compact, digest, publicKey)).toBe(true);
  });

  test('refuses zero, the order of the curve, and other lengths as secrets', () => {
    const order = hexToBytes('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141');
    for (const secret of [
      new Uint8Array(32),
      order,
      new Uint8Array(31).fill(1),
      new Uint8Array(33).fill(1),
    ]) {
      expect(backend.isValidSecret(secret)).toBe(false);
    }
    order.set([0x40], 31);
    expect(backend.isValidSecret(order)).toBe(true);
    expect(() => backend.publicKey(new Uint8Array(32), true)).toThrow();
  });

  test('refuses a tweak that leaves zero, and leaves its arguments as they were', () => {
    const secret = new Uint8Array(32).fill(7);
    const negated = backend.negateSecret(secret);
    expect(() => backend.addToSecret(secret, negated)).toThrow();
    expect(secret).toEqual(new Uint8Array(32).fill(7));
  });
});

test('both backends give the same bytes on random secrets, digests and tweaks', async () => {
  await fc.assert(
    fc.property(secrets, bytes32, secrets, (secret, digest, tweak) => {
      const [signature, expected] = [native().sign(digest, secret), nobleBackend.sign(digest, secret)];
      expect(bytesToHex(signature.compact)).toBe(bytesToHex(expected.compact));
      expect(signature.recoveryId).toBe(expected.recoveryId);
      for (const compressed of [true, false]) {
        expect(native().publicKey(secret, compressed)).toEqual(nobleBackend.publicKey(secret, compressed));
      }
      expect(native().negateSecret(secret)).toEqual(nobleBackend.negateSecret(secret));
      fc.pre(bytesToHex(tweak) !== bytesToHex(nobleBackend.negateSecret(secret)));
      expect(native().addToSecret(secret, tweak)).toEqual(nobleBackend.addToSecret(secret, tweak));
    }),
    { numRuns: runs },
  );
});

describe('the self-test at start', () => {
  test('passes on this machine, and where there is no native backend', () => {
    expect(() => assertBackendsAgree()).not.toThrow();
    expect(() => assertBackendsAgree(undefined)).not.toThrow();
  });

  test.each(['publicKey', 'sign'] as const)(
    'stops the start when %s of the native backend is wrong',
    (part) => {
      const broken: EcBackend = {
        ...native(),
        [part]: (...inputs: never[]) => {
          const result = (native()[part] as (...all: never[]) => unknown)(...inputs);
          if (result instanceof Uint8Array) return result.map((byte) => byte ^ 1);
          return { ...(result as object), recoveryId: 9 };
        },
      };
      expect(() => assertBackendsAgree(broken)).toThrow(/disagrees .* reinstall/);
    },
  );
});

describe('ed25519', () => {
  test.each(readVectors('signature-schemes', 'ed25519'))(
    '$source',
    ({ seed, publicKey, message, signature }) => {
      expect(bytesToHex(ed25519PublicKey(hexToBytes(seed)))).toBe(publicKey);
      expect(bytesToHex(ed25519Sign(hexToBytes(message), hexToBytes(seed)))).toBe(signature);
      expect(ed25519Verify(hexToBytes(signature), hexToBytes(message), hexToBytes(publicKey))).toBe(true);
    },
  );

  test('gives the bytes that noble gives', async () => {
    await fc.assert(
      fc.property(bytes32, fc.uint8Array({ maxLength: 200 }), (seed, message) => {
        const signature = ed25519Sign(message, seed);
        expect(signature).toEqual(nobleEd25519.sign(message, seed));
        const publicKey = ed25519PublicKey(seed);
        expect(publicKey).toEqual(nobleEd25519.getPublicKey(seed));
        const forged = signature.map((byte, index) => (index === 0 ? byte ^ 1 : byte));
        expect(ed25519Verify(forged, message, publicKey)).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  test('refuses seeds and public keys of other lengths', () => {
    expect(() => ed25519PublicKey(new Uint8Array(31))).toThrow(
      'expected an ed25519 seed of 32 bytes, got 31',
    );
    expect(ed25519Verify(new Uint8Array(64), new Uint8Array(1), new Uint8Array(31))).toBe(false);
    expect(ed25519Verify(new Uint8Array(63), new Uint8Array(1), new Uint8Array(32))).toBe(false);
  });
});

describe('BIP-340', () => {
  test.each(readVectors('signature-schemes', 'schnorr'))('$source', ({ secret, digest, signature }) => {
    expect(bytesToHex(schnorrSign(hexToBytes(digest), hexToBytes(secret)))).toBe(signature);
    expect(bytesToHex(schnorrSignPortable(hexToBytes(digest), hexToBytes(secret)))).toBe(signature);
  });

  test('WebAssembly and noble give the same bytes, which verify', async () => {
    await fc.assert(
      fc.property(secrets, bytes32, (secret, digest) => {
        const signature = schnorrSign(digest, secret);
        expect(bytesToHex(signature)).toBe(bytesToHex(schnorrSignPortable(digest, secret)));
        expect(nobleSchnorr.verify(signature, digest, nobleSchnorr.getPublicKey(secret))).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('a tagged hash is sha256(sha256(tag) || sha256(tag) || message)', () => {
    const tag = createHash('sha256').update('TapTweak').digest();
    const expected = createHash('sha256').update(tag).update(tag).update('x').digest('hex');
    expect(bytesToHex(taggedHash('TapTweak', new TextEncoder().encode('x')))).toBe(expected);
  });
});
