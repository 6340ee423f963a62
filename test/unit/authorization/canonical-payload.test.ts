import { describe, expect, test } from 'vitest';
import {
  candidateUrls,
  canonicalPayloads,
  canonicalPayloadTexts,
} from '../../../src/engine/authorization/request-signatures.ts';

const headers = { 'service-app-id': 'cmh2k3v9e0000l20c9q7ab4yz' };
const url = 'https://api.example.com/v1/wallets/w1/rpc';

describe('canonicalPayloads', () => {
  test('canonicalPayloads have sorted members without white space, in UTF-8', () => {
    const request = {
      method: 'POST',
      urls: [url],
      body: { params: { message: 'grüß' }, method: 'personal_sign' },
      headers: { 'service-request-expiry': '1763719200000', ...headers },
    };
    const text =
      '{"body":{"method":"personal_sign","params":{"message":"grüß"}},' +
      '"headers":{"service-app-id":"cmh2k3v9e0000l20c9q7ab4yz","service-request-expiry":"1763719200000"},' +
      '"method":"POST","url":"https://api.example.com/v1/wallets/w1/rpc","version":1}';
    expect(canonicalPayloadTexts(request)).toEqual([text]);
    expect(canonicalPayloads(request)).toEqual([new Uint8Array(Buffer.from(text, 'utf8'))]);
  });

  test.each([
    ['absent', undefined],
    ['{}', {}],
    ['the empty string', ''],
  ])('canonicalPayloads have three forms when the body is %s', (_, body) => {
    const rest = `"headers":{"service-app-id":"cmh2k3v9e0000l20c9q7ab4yz"},"method":"DELETE","url":"${url}","version":1}`;
    expect(canonicalPayloadTexts({ method: 'DELETE', urls: [url], body, headers })).toEqual([
      `{"body":"",${rest}`,
      `{${rest}`,
      `{"body":{},${rest}`,
    ]);
  });

  test.each([[[]], [null], [0], [false]])('canonicalPayloads have one form when the body is %j', (body) => {
    expect(canonicalPayloadTexts({ method: 'POST', urls: [url], body, headers })).toHaveLength(1);
  });

  test('canonicalPayloads are created for every URL, the first URL first', () => {
    const texts = canonicalPayloadTexts({
      method: 'POST',
      urls: [url, 'https://two/v1'],
      body: { a: 1 },
      headers,
    });
    expect(texts.map((text) => JSON.parse(text).url)).toEqual([url, 'https://two/v1']);
  });
});

describe('candidateUrls', () => {
  test('append the path as sent to the origin and each base URL', () => {
    expect(
      candidateUrls({
        publicBaseUrls: ['https://api.example.com', 'https://edge.example.com/tenant/'],
        origin: 'https://127.0.0.1:4010',
        target: '/api/v1/wallets/ext_wal_order-7/rpc',
      }),
    ).toEqual([
      'https://127.0.0.1:4010/api/v1/wallets/ext_wal_order-7/rpc',
      'https://api.example.com/api/v1/wallets/ext_wal_order-7/rpc',
      'https://edge.example.com/tenant/api/v1/wallets/ext_wal_order-7/rpc',
    ]);
  });

  test('candidateUrls drop a trailing slash and duplicates', () => {
    expect(
      candidateUrls({ publicBaseUrls: ['https://a/'], origin: 'https://a', target: '/v1/policies/p/' }),
    ).toEqual(['https://a/v1/policies/p']);
  });

  test('candidateUrls work without a request origin', () => {
    expect(candidateUrls({ publicBaseUrls: ['https://a'], origin: undefined, target: '/v1' })).toEqual([
      'https://a/v1',
    ]);
  });

  test('end with the decoded target, in which encoded delimiters stay', () => {
    const target = '/v1/wallets/ext_wal_gr%C3%BC%C3%9Fe%3A7%2Fb%2541%3F/rpc?q=a%20b%26c';
    expect(candidateUrls({ publicBaseUrls: ['https://a'], origin: undefined, target })).toEqual([
      `https://a${target}`,
      'https://a/v1/wallets/ext_wal_grüße:7%2Fb%2541%3F/rpc?q=a b%26c',
    ]);
  });

  test.each(['/v1/%', '/v1/%ff', '/v1/%2F', '/v1/%c3'])(
    'candidateUrls ignore %s, which does not decode',
    (target) => {
      const address = { publicBaseUrls: ['https://a'], origin: undefined, target };
      expect(candidateUrls(address)).toEqual([`https://a${target}`]);
    },
  );
});
