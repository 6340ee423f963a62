import { describe, expect, test } from 'vitest';
import { urlOf } from '../../../src/sandbox/requests/http-archive.ts';

// RFC 9112 section 3.2 has the forms of a target, section 3.3 the URL that each stands for.
describe('the URL of a recorded request', () => {
  const origin = 'https://127.0.0.1:4010';
  test.each([
    ['/v1/wallets?limit=1', 'api.example:1', 'https://api.example:1/v1/wallets?limit=1'],
    ['/v1/wallets', undefined, 'https://127.0.0.1:4010/v1/wallets'],
    ['http://127.0.0.1:4010/v1/wallets', '127.0.0.1:4010', 'http://127.0.0.1:4010/v1/wallets'],
    ['HTTPS://example.com/a', 'other.example', 'https://example.com/a'],
    ['*', 'api.example', 'https://api.example/*'],
    ['api.example:443', 'api.example', 'https://api.example/api.example:443'],
    ['//double/v1', 'api.example', 'https://api.example//double/v1'],
    ['/%', 'api.example', 'https://api.example/%'],
    ['/v1/%zz?a=%', 'api.example', 'https://api.example/v1/%zz?a=%'],
    ['http://', 'api.example', 'https://api.example/http://'],
    ['http://[bad/v1', 'api.example', 'https://api.example/http://[bad/v1'],
    ['javascript:alert(1)', 'api.example', 'https://api.example/javascript:alert(1)'],
    ['/v1', 'not a host', 'https://127.0.0.1:4010/v1'],
    ['/v1', '', 'https://127.0.0.1:4010/v1'],
    ['/v1', 'a:99999999', 'https://127.0.0.1:4010/v1'],
  ])('%s with the host %s is %s', (target, host, url) => {
    expect(urlOf(target, host, origin).href).toBe(url);
  });

  test('the URL of a recorded request is made of every text', () => {
    for (const target of [
      '',
      '/'.repeat(60_000),
      '\u0000',
      '/\\..\\..',
      '%',
      '?',
      '#',
      'http:/a',
      'https:///a',
    ])
      expect(urlOf(target, '[', origin)).toBeInstanceOf(URL);
  });
});
