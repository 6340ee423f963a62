import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  MAX_SIGNATURES,
  parseSignatureHeader,
  TooManySignaturesError,
} from '../../../src/engine/authorization/request-signatures.ts';
import { costOf, verify } from '../../support/verify.ts';

describe('parseSignatureHeader', () => {
  test.each([
    ['an absent header', undefined, []],
    ['an empty header', '', []],
    ['spaces and commas alone', ' , ,, ', []],
    ['one signature', 'MEUC', ['MEUC']],
    ['several with spaces', ' MEUC , MEQC,,MEYC ', ['MEUC', 'MEQC', 'MEYC']],
  ])('parseSignatureHeader: %s', (_, header, signatures) => {
    expect(parseSignatureHeader(header)).toEqual(signatures);
  });

  test('parseSignatureHeader refuses ten thousand signatures', () => {
    expect(() => parseSignatureHeader('MEUC,'.repeat(10_000))).toThrow(TooManySignaturesError);
    expect(parseSignatureHeader('MEUC,'.repeat(MAX_SIGNATURES))).toHaveLength(MAX_SIGNATURES);
  });
});

describe('verifySignatures', () => {
  const ann = newSigner();
  const bob = newSigner();
  const cid = newSigner();
  const payloads = ['first', 'second', 'third'].map((text) => new TextEncoder().encode(text));
  const keys = [ann.publicKey, bob.publicKey];

  test('verifySignatures finds the key and the payload of each signature', () => {
    const result = verify({ signatures: [bob.sign('second'), ann.sign('second')], payloads, keys });
    expect(result).toEqual({
      keys: new Set([bob.publicKey, ann.publicKey]),
      keyOfSignature: [bob.publicKey, ann.publicKey],
      payloadIndices: new Set([1]),
    });
  });

  test('verifySignatures accepts signers with different forms of the same request', () => {
    const result = verify({ signatures: [bob.sign('third'), ann.sign('first')], payloads, keys });
    expect(result.keys).toEqual(new Set([bob.publicKey, ann.publicKey]));
    expect(result.payloadIndices).toEqual(new Set([2, 0]));
  });

  test('verifySignatures reports a second signature of the same key, and counts it once', () => {
    const result = verify({ signatures: [ann.sign('first'), ann.sign('first')], payloads, keys });
    expect([...result.keys]).toEqual([ann.publicKey]);
    expect(result.keyOfSignature).toEqual([ann.publicKey, ann.publicKey]);
  });

  test.each([
    ['of an unrelated key', cid.sign('first')],
    ['over another text', ann.sign('fourth')],
    ['that is not base64', '!!!'],
    ['with spaces inside', ann.sign('first').replace(/^(.{8})/, '$1 ')],
    ['without its padding', Buffer.alloc(70, 0x30).toString('base64').replaceAll('=', '')],
    ['of no bytes', '='],
  ])('skips a signature %s', (_, signature) => {
    const result = verify({ signatures: [signature, bob.sign('first')], payloads, keys });
    expect(result.keyOfSignature).toEqual([undefined, bob.publicKey]);
  });

  test('verifySignatures stops when enough keys have signed', () => {
    const result = verify({
      signatures: [ann.sign('first'), bob.sign('first')],
      payloads,
      keys,
      isEnough: (verified) => verified.size === 1,
    });
    expect(result.keyOfSignature).toEqual([ann.publicKey, undefined]);
  });

  const strangers = Array.from({ length: 300 }, () => newSigner().publicKey);

  test('verifySignatures finds the one key among hundreds, in either encoding and over a long payload', () => {
    const long = new TextEncoder().encode(`{"body":"${'x'.repeat(1_000_000)}"}`);
    const text = new TextDecoder().decode(long);
    for (const signature of [ann.sign('third'), ann.signRaw('third'), ann.sign(text), ann.signRaw(text)]) {
      const result = verify({
        signatures: [signature],
        payloads: [...payloads, long],
        keys: [...strangers, ...keys],
      });
      expect(result.keyOfSignature).toEqual([ann.publicKey]);
    }
  });

  test('a wrong signature costs the same under one hundred keys and under sixty thousand', () => {
    const many = [...strangers];
    while (many.length < 60_000) many.push(randomBytes(91).toString('base64'));
    const signatures = [cid.sign('first')];
    const cost = costOf({ signatures, payloads, keys: many });
    expect(cost).toBe(costOf({ signatures, payloads, keys: many.slice(0, 100) }));
    expect(cost).toBeLessThan(20);
  });

  test('verifySignatures checks every signature of the longest header with at most two thousand verifications', () => {
    const wrong = Array.from({ length: MAX_SIGNATURES - 1 }, () => cid.sign('first'));
    const search = { signatures: [...wrong, ann.sign('first')], payloads, keys: [...strangers, ...keys] };
    expect(verify(search).keyOfSignature.at(-1)).toBe(ann.publicKey);
    expect(costOf(search)).toBeLessThan(2_000);
  });

  test('verifySignatures checks a repeated signature once', () => {
    const signatures = [cid.sign('first'), ...Array.from({ length: 50 }, () => 'AAAA')];
    const once = costOf({ signatures: signatures.slice(0, 2), payloads, keys: strangers });
    expect(costOf({ signatures, payloads, keys: strangers })).toBe(once);
  });

  test('hashes a long payload once for all signatures', () => {
    const long = new Uint8Array(1_000_000);
    const search = (count: number) => ({
      signatures: Array.from({ length: count }, () => cid.sign('first')),
      payloads: [long],
      keys: strangers,
    });
    const [one, two, three] = [1, 2, 3].map((count) => costOf(search(count)));
    expect(three! - two!).toBe(two! - one!);
    expect(two! - one!).toBeLessThan(one!);
  });
});

function newSigner() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    sign: (text: string) => signText(privateKey, text),
    signRaw: (text: string) =>
      sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64'),
  };
}

function signText(privateKey: KeyObject, text: string): string {
  return sign('sha256', Buffer.from(text, 'utf8'), privateKey).toString('base64');
}
