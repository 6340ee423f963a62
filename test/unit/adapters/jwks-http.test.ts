import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createHttpJwks } from '../../../src/adapters/jwks-http.ts';
import { adjustableClock } from '../../../src/adapters/runtime.ts';

const minuteMs = 60_000;

describe('a key set over HTTP', () => {
  let server: Server;
  let url: string;
  let asked: number;
  let answer: { status: number; body: string };
  const clock = adjustableClock({ startMs: Date.UTC(2026, 0, 1), frozen: true });

  beforeEach(async () => {
    asked = 0;
    answer = { status: 200, body: '{"keys":[{"kid":"first"}]}' };
    clock.reset();
    server = createServer((_request, response) => {
      asked += 1;
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  test('a key set over HTTP is cached for an hour, and fetched once for concurrent callers', async () => {
    const jwks = createHttpJwks(clock);
    await Promise.all([jwks.keys(url), jwks.keys(url)]);
    clock.advance(60 * minuteMs - 1);
    expect(await jwks.keys(url)).toEqual([{ kid: 'first' }]);
    expect(asked).toBe(1);
    clock.advance(1);
    await jwks.keys(url);
    expect(asked).toBe(2);
  });

  test('a key set over HTTP is fetched again for an unknown key id, at most twice a minute', async () => {
    const jwks = createHttpJwks(clock);
    await jwks.keys(url);
    answer.body = '{"keys":[{"kid":"second"}]}';
    expect(await jwks.keys(url, true)).toEqual([{ kid: 'first' }]);
    clock.advance(minuteMs / 2);
    expect(await jwks.keys(url, true)).toEqual([{ kid: 'second' }]);
    expect(asked).toBe(2);
  });

  test('a key set over HTTP stays in use while its issuer fails, which is called at most twice a minute', async () => {
    const jwks = createHttpJwks(clock);
    await jwks.keys(url);
    clock.advance(2 * 60 * minuteMs);
    answer = { status: 503, body: 'later' };
    for (let count = 0; count < 3; count += 1) {
      expect(await jwks.keys(url, count > 0)).toEqual([{ kid: 'first' }]);
    }
    expect(asked).toBe(2);
    clock.advance(minuteMs / 2);
    answer = { status: 200, body: '{"keys":[{"kid":"second"}]}' };
    expect(await jwks.keys(url)).toEqual([{ kid: 'second' }]);
    expect(asked).toBe(3);
  });

  test.each([
    ['a status that is no success', { status: 500, body: '{"keys":[]}' }, /got 500$/],
    ['a document without keys', { status: 200, body: '{}' }, /expected a `keys` array/],
    ['what is no JSON', { status: 200, body: '<html>' }, /JSON/],
    [
      'more than 256 KiB',
      { status: 200, body: `{"keys":["${'x'.repeat(262_144)}"]}` },
      /at most 262144 bytes/,
    ],
    ['a redirect', { status: 302, body: '' }, /fetch failed|redirect/],
  ])('a key set over HTTP: %s is refused', async (_what, given, message) => {
    answer = given;
    await expect(createHttpJwks(clock).keys(url)).rejects.toThrow(message);
  });
});
