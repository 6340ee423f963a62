import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { reportSignature } from '../../../src/cli/sig-explain.ts';
import { explainSignature, payloadVariants } from '../../../src/engine/authorization/explain-signature.ts';

const pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const key = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
const url = 'https://api.example.com:8443/v1/wallets/w1/rpc';
const payload =
  '{"body":{"method":"personal_sign"},"headers":{"service-app-id":"acme","service-request-expiry":"1763719200000"},' +
  `"method":"POST","url":"${url}","version":1}`;

describe('explainSignature', () => {
  test('explainSignature names the key of a valid signature', () => {
    expect(explain(payload)).toEqual({ encoding: 'der', key });
  });

  test.each([
    ['the URL ended in a slash', 'url', payload.replace(url, `${url}/`)],
    ['the URL began with `http://`', 'url', payload.replace('https:', 'http:')],
    ['the URL named no port', 'url', payload.replace(':8443', '')],
    ['the path differed by the prefix `/api`', 'url', payload.replace('/v1/', '/api/v1/')],
    ['only the path was signed', 'url', payload.replace(url, '/v1/wallets/w1/rpc')],
    ['the method was `PUT`', 'method', payload.replace('POST', 'PUT')],
    ['the method was in lower case', 'method', payload.replace('POST', 'post')],
    ['the body was the empty string', 'body', payload.replace('{"method":"personal_sign"}', '""')],
    ['the body was left out', 'body', payload.replace('"body":{"method":"personal_sign"},', '')],
    [
      'the body was signed as a string of JSON',
      'body',
      payload.replace('{"method":"personal_sign"}', '"{\\"method\\":\\"personal_sign\\"}"'),
    ],
    [
      'the header `service-request-expiry` was not signed',
      'headers',
      payload.replace(',"service-request-expiry":"1763719200000"', ''),
    ],
    [
      'the header `service-request-expiry` was signed as a number',
      'headers',
      payload.replace('"1763719200000"', '1763719200000'),
    ],
    ['the version was left out', 'version', payload.replace(',"version":1', '')],
    ['the payload was indented by two spaces', 'serialisation', JSON.stringify(JSON.parse(payload), null, 2)],
    ['the payload ended in a line feed', 'serialisation', `${payload}\n`],
    ['the payload was hashed twice', 'serialisation', createHash('sha256').update(payload).digest()],
  ])('recognises that %s', (mistake, part, text) => {
    expect(explain(text)).toEqual({ encoding: 'der', nearMiss: { key, part, mistake } });
  });

  test('all mistakes have different texts, none equal to the payload', () => {
    const texts = payloadVariants(payload).map(({ bytes }) => Buffer.from(bytes).toString('utf8'));
    expect(new Set([payload, ...texts]).size).toBe(texts.length + 1);
  });

  test.each([
    ['text that is not base64', '%%%', 'not base64'],
    ['base64 of something else', 'AAAA', 'neither DER nor 64 bytes'],
  ])('explainSignature reports %s', (_, signature, encoding) => {
    expect(explainSignature({ signature, payloads: [payload], keys: [key] })).toEqual({ encoding });
  });

  test('explainSignature finds nothing for an unrelated signature', () => {
    expect(explain('something else')).toEqual({
      encoding: 'der',
      strangers: expect.not.arrayContaining([key]),
    });
    expect(
      explainSignature({ signature: signed(payload), payloads: ['not a payload'], keys: [key] }),
    ).toEqual({ encoding: 'der', strangers: expect.not.arrayContaining([key]) });
  });
});

describe('custos sig explain', () => {
  const loose = JSON.stringify(JSON.parse(payload), [
    'version',
    'url',
    'method',
    'headers',
    'body',
    'service-app-id',
    'service-request-expiry',
  ]);

  test('custos sig explain accepts a payload with keys in any order', () => {
    expect(reportSignature({ payload: loose, signature: signed(payload), keys: [key] })).toEqual({
      valid: true,
      canonical_payload: payload,
      was_canonical: false,
      encoding: 'der',
      public_key: key,
      reason: 'the signature covers the canonical payload',
    });
  });

  test('custos sig explain reports a payload that was signed unchanged', () => {
    expect(reportSignature({ payload: loose, signature: signed(loose), keys: [key] })).toMatchObject({
      valid: false,
      differs_in: 'serialisation',
      reason: expect.stringMatching(
        /members in the order version, url, method, headers, body: sign canonical/,
      ),
    });
  });

  test('custos sig explain reports a missing signature', () => {
    const { valid, reason } = reportSignature({ payload, signature: signed('else'), keys: [key] });
    expect({ valid, reason }).toEqual({
      valid: false,
      reason: expect.stringMatching(/verifies under none of the keys/),
    });
  });
});

function signed(text: string | Buffer): string {
  return sign('sha256', Buffer.from(text as string, 'utf8'), pair.privateKey).toString('base64');
}

function explain(text: string | Buffer) {
  return explainSignature({ signature: signed(text), payloads: [payload], keys: [key] });
}
