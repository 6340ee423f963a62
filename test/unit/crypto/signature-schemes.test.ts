import { createHash } from 'node:crypto';
import { ed25519 as nobleEd25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import * as fc from 'fast-check';
import * as wasm from 'tiny-secp256k1';
import { describe, expect, test } from 'vitest';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from '../../../src/engine/crypto/ed25519.ts';
import { bytesToHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import {
  assertBackendsAgree,
  type EcBackend,
  knownAnswers,
  nativeBackend,
  nobleBackend,
  type SchnorrCurve,
  schnorrSign,
  taggedHash,
} from '../../../src/engine/crypto/secp256k1.ts';
import { readVectors } from '../signing/vectors.ts';

const runs = process.env.TEST_LONG === '1' ? 10_000 : 300;
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
// Secrets from the whole range: the order of the curve is so close to 2^256 that random values are below it.
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

  test('refuses a tweak that results in zero, and does not change its arguments', () => {
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
  test.each(knownAnswers)('knows the answers of the portable backend: vector $fill', (answer) => {
    const secret = new Uint8Array(32).fill(answer.fill);
    const digest = new Uint8Array(32).fill(0xff - answer.fill);
    const { compact, recoveryId } = nobleBackend.sign(digest, secret);
    expect(bytesToHex(nobleBackend.publicKey(secret, false))).toBe(answer.publicKey);
    expect(bytesToHex(compact)).toBe(answer.signature);
    expect(recoveryId).toBe(answer.recoveryId);
    expect(bytesToHex(nobleBackend.signSchnorr(digest, secret))).toBe(answer.schnorr);
  });

  test('passes on this machine, and where there is no native backend', () => {
    expect(() => assertBackendsAgree()).not.toThrow();
    expect(() => assertBackendsAgree(undefined)).not.toThrow();
  });

  const operations = ['publicKey', 'sign', 'signSchnorr', 'recover', 'verify'] as const;

  test.each(operations)(
    'the self-test at start stops the start when %s of the native backend is wrong',
    (part) => {
      const broken: EcBackend = {
        ...native(),
        [part]: (...inputs: never[]) => {
          const result = (native()[part] as (...all: never[]) => unknown)(...inputs);
          if (typeof result === 'boolean') return !result;
          if (result instanceof Uint8Array) return result.map((byte) => byte ^ 1);
          return { ...(result as object), recoveryId: 9 };
        },
      };
      expect(() => assertBackendsAgree(broken)).toThrow(`in \`${part}\` on vector 2; reinstall`);
    },
  );

  test('the self-test at start stops the start when the native backend accepts every signature', () => {
    const credulous: EcBackend = { ...native(), verify: () => true };
    expect(() => assertBackendsAgree(credulous)).toThrow('in `verify` on vector 2; reinstall');
  });

  test.each(operations)(
    'the self-test at start stops the start when %s of the native backend fails',
    (part) => {
      const cause = new Error('unreachable');
      const broken: EcBackend = {
        ...native(),
        [part]: () => {
          throw cause;
        },
      };
      expect(() => assertBackendsAgree(broken)).toThrow(
        expect.objectContaining({ message: expect.stringContaining('in an error on vector 2'), cause }),
      );
    },
  );
});

describe('ed25519', () => {
  test.each(readVectors('signature-schemes', 'ed25519'))(
    'ed25519: $source',
    ({ seed, publicKey, message, signature }) => {
      expect(bytesToHex(ed25519PublicKey(hexToBytes(seed)))).toBe(publicKey);
      expect(bytesToHex(ed25519Sign(hexToBytes(message), hexToBytes(seed)))).toBe(signature);
      expect(ed25519Verify(hexToBytes(signature), hexToBytes(message), hexToBytes(publicKey))).toBe(true);
    },
  );

  test('ed25519: gives the bytes that noble gives', async () => {
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

  test('ed25519: refuses seeds and public keys of other lengths', () => {
    expect(() => ed25519PublicKey(new Uint8Array(31))).toThrow(
      'expected an ed25519 seed of 32 bytes, got 31',
    );
    expect(ed25519Verify(new Uint8Array(64), new Uint8Array(1), new Uint8Array(31))).toBe(false);
    expect(ed25519Verify(new Uint8Array(63), new Uint8Array(1), new Uint8Array(32))).toBe(false);
  });
});

describe('BIP-340', () => {
  const vectors = readVectors('signature-schemes', 'schnorr');

  describe.each(backends)('on the %s backend', (_name, backend) => {
    test.each(vectors)('$source', ({ secret, digest, signature }) => {
      expect(bytesToHex(backend.signSchnorr(hexToBytes(digest), hexToBytes(secret)))).toBe(signature);
    });

    test('refuses zero and the order of the curve as secrets, and does not change its arguments', () => {
      const order = hexToBytes('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141');
      const digest = new Uint8Array(32).fill(3);
      for (const secret of [new Uint8Array(32), order]) {
        expect(() => backend.signSchnorr(digest, secret)).toThrow();
      }
      const secret = new Uint8Array(32).fill(4);
      backend.signSchnorr(digest, secret);
      expect(secret).toEqual(new Uint8Array(32).fill(4));
      expect(digest).toEqual(new Uint8Array(32).fill(3));
    });
  });

  test('both backends give the bytes of libsecp256k1 itself on random secrets and digests', async () => {
    await fc.assert(
      fc.property(secrets, bytes32, (secret, digest) => {
        const expected = bytesToHex(wasm.signSchnorr(digest, secret, new Uint8Array(32)));
        expect(bytesToHex(native().signSchnorr(digest, secret))).toBe(expected);
        expect(bytesToHex(nobleBackend.signSchnorr(digest, secret))).toBe(expected);
      }),
      { numRuns: runs },
    );
  });

  const curve: SchnorrCurve = {
    publicKey: (secret) => nobleBackend.publicKey(secret, true),
    negateSecret: nobleBackend.negateSecret,
    addToSecret: nobleBackend.addToSecret,
    multiplySecret(secret, factor) {
      const { Fn } = secp256k1.Point;
      return Fn.toBytes(Fn.mul(Fn.fromBytes(secret), Fn.fromBytes(factor)));
    },
    addMultiple(publicKey, otherKey, scalar) {
      const { Point } = secp256k1;
      const multiple = Point.fromBytes(otherKey).multiply(Point.Fn.fromBytes(scalar));
      return Point.fromBytes(publicKey).add(multiple).toBytes(true);
    },
  };

  test.each(vectors)('BIP-340 of the operations of any curve: $source', ({ secret, digest, signature }) => {
    expect(bytesToHex(schnorrSign(curve, hexToBytes(digest), hexToBytes(secret)))).toBe(signature);
  });

  test.each(['negateSecret', 'addToSecret', 'multiplySecret', 'addMultiple'] as const)(
    'a signature is not returned when %s has gone wrong',
    (part) => {
      const faulty: SchnorrCurve = {
        ...curve,
        [part]: () => curve.publicKey(new Uint8Array(32).fill(9)).slice(-32),
      };
      // The key and the nonce of this vector both have to be negated.
      const [digest, secret] = [new Uint8Array(32).fill(0xfb), new Uint8Array(32).fill(4)];
      expect(() => schnorrSign(faulty, digest, secret)).toThrow('to verify');
    },
  );

  test('a tagged hash is sha256(sha256(tag) || sha256(tag) || message)', () => {
    const tag = createHash('sha256').update('TapTweak').digest();
    const expected = createHash('sha256').update(tag).update(tag).update('x').digest('hex');
    expect(bytesToHex(taggedHash('TapTweak', new TextEncoder().encode('x')))).toBe(expected);
  });
});
