import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeCanonicalBase64,
  InvalidPublicKeyError,
  p256KeyPairFromSeed,
  p256PublicKeyPoint,
  parseP256PublicKey,
  verifyP256,
} from '../../../src/engine/crypto/p256.ts';

const pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const spki = pair.publicKey.export({ format: 'der', type: 'spki' });
const pem = pair.publicKey.export({ format: 'pem', type: 'spki' }).toString();
const publicKey = spki.toString('base64');
const point = spki.subarray(-65);
const message = new TextEncoder().encode('the canonical payload');

describe('parseP256PublicKey accepts', () => {
  test('base64 of a SubjectPublicKeyInfo, unchanged', () => {
    expect(parseP256PublicKey(publicKey)).toBe(publicKey);
  });

  test.each([
    ['PEM', pem],
    ['PEM with CRLF line ends', pem.replaceAll('\n', '\r\n')],
    ['PEM without the last line end', pem.trim()],
    ['PEM with text around it', `# my key\n${pem}until 2027\n`],
    ['PEM after a byte order mark', `\ufeff${pem}`],
    ['PEM on one line, as environment variables have it', pem.replaceAll('\n', ' ')],
    ['PEM without line ends', pem.replaceAll('\n', '')],
    [
      'PEM after another block',
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${pem}`,
    ],
  ])('parseP256PublicKey accepts: %s, returned as base64', (_, text) => {
    expect(parseP256PublicKey(text)).toBe(publicKey);
  });

  test('a compressed point, returned uncompressed', () => {
    const compressed = Buffer.from(p256.Point.fromBytes(point).toBytes(true));
    const der = Buffer.concat([
      Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex'),
      compressed,
    ]);
    expect(parseP256PublicKey(der.toString('base64'))).toBe(publicKey);
  });
});

describe('parseP256PublicKey and OpenSSL', () => {
  const lines = pem.trimEnd().split('\n');
  const blank = fc.stringMatching(/^[ \t]{0,3}$/);
  const words = fc.stringMatching(/^[a-z #:=.]{0,30}$/);
  const layout = fc.record({
    width: fc.integer({ min: 1, max: 76 }),
    end: fc.constantFrom('\n', '\r\n', ' \n', '\t\r\n'),
    indent: blank,
    before: fc.array(words, { maxLength: 3 }),
    after: fc.array(words, { maxLength: 3 }),
    gap: fc.record({ at: fc.nat(123), text: fc.stringMatching(/^[ \t\n]{0,2}$/) }),
    hasLastEnd: fc.boolean(),
  });

  test('every PEM text from which OpenSSL reads this key', () => {
    let accepted = 0;
    fc.assert(
      fc.property(layout, ({ width, end, indent, before, after, gap, hasLastEnd }) => {
        const spaced = publicKey.slice(0, gap.at) + gap.text + publicKey.slice(gap.at);
        const body = (spaced.match(new RegExp(`[^]{1,${width}}`, 'g')) ?? []).map((line) => indent + line);
        const text =
          [...before, lines[0], ...body, lines.at(-1), ...after].join(end) + (hasLastEnd ? end : '');
        if (!opensslReads(text)) return;
        accepted += 1;
        expect(parseP256PublicKey(text)).toBe(publicKey);
      }),
      { numRuns: 500, seed: 1 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  function opensslReads(text: string): boolean {
    try {
      return createPublicKey(text).equals(pair.publicKey);
    } catch {
      return false;
    }
  }
});

describe('parseP256PublicKey takes linear time', () => {
  const head = '-----BEGIN PUBLIC KEY-----';
  test.each([
    ['spaces after the head', `${head}${' '.repeat(2_021)}x`],
    ['line ends after the head', `${head}${'\n'.repeat(2_021)}x`],
    ['spaces before the head', `${' '.repeat(2_021)}${head}x`],
    ['heads', head.repeat(78)],
    ['tails', `${head}${'-----END PUBLIC KEY-----'.repeat(80)}`],
    ['letters and spaces', `${head}${'A '.repeat(1_010)}x`],
    ['dashes', '-'.repeat(2_048)],
    ['padding', '='.repeat(2_048)],
  ])('parseP256PublicKey takes linear time of %s', (_, text) => {
    const before = process.threadCpuUsage();
    for (let run = 0; run < 20; run += 1)
      expect(() => parseP256PublicKey(text)).toThrow(InvalidPublicKeyError);
    // One run took seconds with a pattern of three adjacent repetitions of whitespace.
    expect(process.threadCpuUsage(before).user / 1000).toBeLessThan(1_000);
  });
});

describe('parseP256PublicKey refuses', () => {
  const offCurve = Buffer.from(spki);
  offCurve[offCurve.length - 1] = (offCurve.at(-1) ?? 0) ^ 1;
  const zeroPoint = Buffer.concat([spki.subarray(0, 27), Buffer.alloc(64)]);
  const k1 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey;
  const p384 = generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).publicKey;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
  const base64 = (key: ReturnType<typeof createPublicKey>) =>
    key.export({ format: 'der', type: 'spki' }).toString('base64');

  test.each([
    ['a point off the curve', offCurve.toString('base64'), /expected a point on the curve/],
    ['the point (0, 0)', zeroPoint.toString('base64'), /expected a point on the curve/],
    ['a key on secp256k1', base64(k1), /another curve/],
    ['a key on P-384', base64(p384), /another curve/],
    ['an RSA key', base64(rsa), /P-256/],
    ['a raw point', point.toString('base64'), /raw point/],
    ['a truncated DER', spki.subarray(0, 60).toString('base64'), /expected 91 bytes of DER, got 60/],
    [
      'bytes after the DER',
      Buffer.concat([spki, Buffer.of(0)]).toString('base64'),
      /expected 91 bytes of DER, got 1 more/,
    ],
    ['no bytes', '', /base64/],
    ['base64url', publicKey.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''), /base64/],
    [
      'base64 with bits left over',
      publicKey.replace(/.==$/, (end) => `${end[0] === 'B' ? 'C' : 'B'}==`),
      /base64/,
    ],
    ['text in the first line of a PEM block', `key: ${pem}`, /PEM/],
    ['text in the last line of a PEM block', `${pem.trim()}garbage`, /PEM/],
    ['two PEM blocks', pem + pem, /PEM/],
    ['a PEM block that does not end', pem.slice(0, pem.indexOf('-----END')), /PEM/],
    ['a PEM block of garbage', '-----BEGIN PUBLIC KEY-----\n%%%%\n-----END PUBLIC KEY-----', /PEM/],
    ['a private key', pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), /PUBLIC KEY/],
    ['a megabyte', 'A'.repeat(1_000_000), /expected at most 2048 characters/],
  ])('parseP256PublicKey refuses: %s', (_, text, reason) => {
    expect(() => parseP256PublicKey(text)).toThrow(InvalidPublicKeyError);
    expect(() => parseP256PublicKey(text)).toThrow(reason);
  });

  test('any key with one byte of its header flipped', () => {
    for (let index = 0; index < 27; index += 1) {
      const changed = Buffer.from(spki);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => parseP256PublicKey(changed.toString('base64'))).toThrow(InvalidPublicKeyError);
    }
  });
});

describe('verifyP256', () => {
  const der = sign('sha256', message, pair.privateKey);
  const raw = sign('sha256', message, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' });

  test('verifyP256 accepts DER and r || s', () => {
    expect(verifyP256(publicKey, message, der)).toBe(true);
    expect(verifyP256(publicKey, message, raw)).toBe(true);
  });

  test('verifyP256 accepts low and high s, as created by @noble/curves', () => {
    const secret = p256.utils.randomSecretKey();
    const key = spkiOf(p256.getPublicKey(secret, false));
    const { r, s } = p256.Signature.fromBytes(p256.sign(message, secret, { lowS: true }));
    for (const twin of [s, p256.Point.Fn.ORDER - s]) {
      const signature = new p256.Signature(r, twin);
      expect(verifyP256(key, message, signature.toBytes('der'))).toBe(true);
      expect(verifyP256(key, message, signature.toBytes('compact'))).toBe(true);
    }
  });

  test('agrees with @noble/curves about every single flipped byte', () => {
    for (const [signature, format] of [
      [der, 'der'],
      [raw, 'compact'],
    ] as const) {
      for (let index = 0; index < signature.length; index += 1) {
        const changed = Uint8Array.from(signature);
        changed[index] = (changed[index] ?? 0) ^ 1;
        expect(verifyP256(publicKey, message, changed)).toBe(nobleAccepts(changed, message, format));
        expect(verifyP256(publicKey, message, changed)).toBe(false);
      }
    }
  });

  test.each([
    ['no bytes', new Uint8Array()],
    ['one byte', Uint8Array.of(0x30)],
    ['64 zeros', new Uint8Array(64)],
    ['a DER signature with a byte after it', Buffer.concat([der, Buffer.of(0)])],
    ['a kilobyte of ones', new Uint8Array(1024).fill(0xff)],
  ])('verifyP256 refuses %s without throwing', (_, signature) => {
    expect(verifyP256(publicKey, message, signature)).toBe(false);
  });

  function nobleAccepts(signature: Uint8Array, text: Uint8Array, format: 'der' | 'compact'): boolean {
    try {
      return p256.verify(signature, text, point, { lowS: false, format });
    } catch {
      return false;
    }
  }
});

describe('p256KeyPairFromSeed', () => {
  test('p256KeyPairFromSeed: creates the same key pair as @noble/curves from the same scalar', () => {
    const seed = new Uint8Array(48).fill(0xa5);
    const made = p256KeyPairFromSeed(seed);
    const scalar = (BigInt(`0x${'a5'.repeat(48)}`) % (p256.Point.Fn.ORDER - 1n)) + 1n;
    const secret = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
    expect(made.publicKey).toBe(spkiOf(p256.getPublicKey(secret, false)));
    const privateKey = createPrivateKey({
      key: Buffer.from(made.privateKeyPkcs8, 'base64'),
      format: 'der',
      type: 'pkcs8',
    });
    expect(Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url')).toEqual(secret);
    expect(privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')).toBe(made.privateKeyPkcs8);
    expect(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).toString('base64')).toBe(
      made.publicKey,
    );
  });

  test('p256KeyPairFromSeed: requires 48 bytes', () => {
    expect(() => p256KeyPairFromSeed(new Uint8Array(32))).toThrow(RangeError);
  });
});

test('p256PublicKeyPoint gives the uncompressed point', () => {
  expect(Buffer.from(p256PublicKeyPoint(publicKey))).toEqual(Buffer.from(point));
});

test.each(['', ' AA==', 'AA', 'AB==', 'A-__', 'AAAA\n'])('decodeCanonicalBase64 refuses %j', (text) => {
  expect(decodeCanonicalBase64(text)).toBeUndefined();
});

function spkiOf(uncompressed: Uint8Array): string {
  return Buffer.concat([spki.subarray(0, 26), uncompressed]).toString('base64');
}
