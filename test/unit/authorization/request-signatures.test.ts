import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  MAX_SIGNATURES,
  parseSignatureHeader,
  TooManySignaturesError,
  verifySignatures,
} from '../../../src/authorization/request-signatures.ts';

describe('parseSignatureHeader', () => {
  test.each([
    ['an absent header', undefined, []],
    ['an empty header', '', []],
    ['spaces and commas alone', ' , ,, ', []],
    ['one signature', 'MEUC', ['MEUC']],
    ['several with spaces', ' MEUC , MEQC,,MEYC ', ['MEUC', 'MEQC', 'MEYC']],
  ])('%s', (_, header, signatures) => {
    expect(parseSignatureHeader(header)).toEqual(signatures);
  });

  test('refuses ten thousand signatures', () => {
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

  test('finds the key and the payload of each signature', () => {
    const result = verifySignatures({ signatures: [bob.sign('second'), ann.sign('second')], payloads, keys });
    expect(result).toEqual({
      keys: new Set([bob.publicKey, ann.publicKey]),
      keyOfSignature: [bob.publicKey, ann.publicKey],
      payloadIndex: 1,
      exhausted: false,
    });
  });

  test('accepts signers who spelled the same request differently', () => {
    const result = verifySignatures({ signatures: [bob.sign('third'), ann.sign('first')], payloads, keys });
    expect(result.keys).toEqual(new Set([bob.publicKey, ann.publicKey]));
  });

  test('names the key of a second signature of one key, and counts it once', () => {
    const result = verifySignatures({ signatures: [ann.sign('first'), ann.sign('first')], payloads, keys });
    expect([...result.keys]).toEqual([ann.publicKey]);
    expect(result.keyOfSignature).toEqual([ann.publicKey, ann.publicKey]);
  });

  test.each([
    ['of a stranger', cid.sign('first')],
    ['over another text', ann.sign('fourth')],
    ['that is not base64', '!!!'],
    ['with spaces inside', ann.sign('first').replace(/^(.{8})/, '$1 ')],
    ['without its padding', Buffer.alloc(70, 0x30).toString('base64').replaceAll('=', '')],
    ['of no bytes', '='],
  ])('passes over a signature %s', (_, signature) => {
    const result = verifySignatures({ signatures: [signature, bob.sign('first')], payloads, keys });
    expect(result.keyOfSignature).toEqual([undefined, bob.publicKey]);
  });

  test('stops once enough keys have signed', () => {
    const result = verifySignatures({
      signatures: [ann.sign('first'), bob.sign('first')],
      payloads,
      keys,
      isEnough: (verified) => verified.size === 1,
    });
    expect(result.keyOfSignature).toEqual([ann.publicKey, undefined]);
  });

  test('gives up before the work grows out of hand', () => {
    const strangers = Array.from({ length: 60 }, () => newSigner().publicKey);
    const signatures = Array.from({ length: MAX_SIGNATURES }, () => cid.sign('first'));
    const result = verifySignatures({ signatures, payloads, keys: strangers });
    expect(result).toMatchObject({ keys: new Set(), exhausted: true });
  });
});

function newSigner() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    sign: (text: string) => signText(privateKey, text),
  };
}

function signText(privateKey: KeyObject, text: string): string {
  return sign('sha256', Buffer.from(text, 'utf8'), privateKey).toString('base64');
}
