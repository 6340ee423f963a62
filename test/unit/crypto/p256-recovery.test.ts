import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { recoverP256PublicKeys, verifyP256 } from '../../../src/engine/crypto/p256.ts';

const { Point } = p256;
const { Fn, Fp } = Point;
const prefix = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex');
const spkiOf = (point: Uint8Array) => Buffer.concat([prefix, point]).toString('base64');
const sha256 = (message: Uint8Array) => createHash('sha256').update(message).digest();
const bytesOf = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
const recover = (signature: Uint8Array, digest: Uint8Array) =>
  recoverP256PublicKeys(signature)?.(digest) ?? [];

/** The keys by the formula of SEC 1 section 4.1.6, computed by another library. */
function expected({ r, s }: { r: bigint; s: bigint }, digest: Uint8Array, x = r): string[] {
  const e = Fn.create(BigInt(`0x${Buffer.from(digest).toString('hex')}`));
  const times = (point: typeof Point.BASE, scalar: bigint) =>
    scalar === 0n ? Point.ZERO : point.multiplyUnsafe(scalar);
  return [2, 3].flatMap((parity) => {
    const R = Point.fromBytes(new Uint8Array([parity, ...bytesOf(x)]));
    const key = times(R, s).subtract(times(Point.BASE, e)).multiplyUnsafe(Fn.inv(r));
    return key.is0() ? [] : [spkiOf(key.toBytes(false))];
  });
}

describe('recoverP256PublicKeys', () => {
  test('recoverP256PublicKeys finds the signer of any message, in both encodings', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    fc.assert(
      fc.property(fc.uint8Array(), fc.constantFrom('der', 'ieee-p1363'), (message, dsaEncoding) => {
        const signature = sign('sha256', message, { key: privateKey, dsaEncoding: dsaEncoding as 'der' });
        expect(recover(signature, sha256(message))).toContain(spki);
      }),
      { numRuns: 100 },
    );
  });

  test('recoverP256PublicKeys finds exactly the keys under which arbitrary signatures verify', () => {
    const scalar = fc.bigInt({ min: 1n, max: Fn.ORDER - 1n });
    fc.assert(
      fc.property(fc.uint8Array(), scalar, scalar, (message, nonce, s) => {
        const r = Fn.create(Point.BASE.multiply(nonce).toAffine().x);
        const signature = Buffer.concat([bytesOf(r), bytesOf(s)]);
        const keys = recover(signature, sha256(message));
        expect(new Set(keys)).toEqual(new Set(expected({ r, s }, sha256(message))));
        for (const key of keys) expect(verifyP256(key, message, signature)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  test.each([
    ['R = G and s = e: one of the two keys would be the point at infinity', 1n],
    ['R = 2G and 2s = e', 2n],
  ])('recoverP256PublicKeys: %s', (_, nonce) => {
    const message = Buffer.from('crafted');
    const e = Fn.create(BigInt(`0x${sha256(message).toString('hex')}`));
    const r = Fn.create(Point.BASE.multiply(nonce).toAffine().x);
    const s = Fn.mul(e, Fn.inv(nonce));
    const signature = Buffer.concat([bytesOf(r), bytesOf(s)]);
    const keys = recover(signature, sha256(message));
    expect(keys).toHaveLength(1);
    expect(keys).toEqual(expected({ r, s }, sha256(message)));
    expect(verifyP256(keys[0] ?? '', message, signature)).toBe(true);
  });

  test('a digest that is a multiple of the order', () => {
    const r = Point.BASE.toAffine().x;
    const signature = Buffer.concat([bytesOf(r), bytesOf(7n)]);
    for (const digest of [new Uint8Array(32), bytesOf(Fn.ORDER)]) {
      expect(new Set(recover(signature, digest))).toEqual(new Set(expected({ r, s: 7n }, digest)));
    }
  });

  test('a point whose x-coordinate exceeds the order', () => {
    const message = Buffer.from('rare');
    let x = Fn.ORDER + 1n;
    while (!isOnCurve(x)) x += 1n;
    const r = x - Fn.ORDER;
    const signature = Buffer.concat([bytesOf(r), bytesOf(5n)]);
    const keys = recover(signature, sha256(message));
    const wanted = expected({ r, s: 5n }, sha256(message), x);
    expect(keys).toEqual(expect.arrayContaining(wanted));
    for (const key of wanted) expect(verifyP256(key, message, signature)).toBe(true);
  });

  test.each([
    ['r = 0', Buffer.concat([bytesOf(0n), bytesOf(1n)])],
    ['s = 0', Buffer.concat([bytesOf(1n), bytesOf(0n)])],
    ['r = n', Buffer.concat([bytesOf(Fn.ORDER), bytesOf(1n)])],
    ['s = n', Buffer.concat([bytesOf(1n), bytesOf(Fn.ORDER)])],
    ['nothing', Buffer.alloc(0)],
    ['one byte', Buffer.of(0x30)],
    ['a DER sequence without integers', Buffer.from('30020500', 'hex')],
    ['an integer longer than the text', Buffer.from('300602207f', 'hex')],
    ['one integer', Buffer.from('3003020101', 'hex')],
    ['an integer of 34 bytes', Buffer.concat([Buffer.from('30270222', 'hex'), Buffer.alloc(34, 1)])],
    ['more after the integers', Buffer.from('300602010102010100', 'hex')],
  ])('a signature of %s has no key', (_, signature) => {
    expect(recoverP256PublicKeys(signature)).toBeUndefined();
  });
});

function isOnCurve(x: bigint): boolean {
  try {
    return Point.fromBytes(new Uint8Array([2, ...bytesOf(Fp.create(x))])).equals(Point.ZERO) === false;
  } catch {
    return false;
  }
}
