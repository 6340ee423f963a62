import { describe, expect, test } from 'vitest';
import type { HttpExchange } from '../../../src/http/http-exchange.ts';
import { createRateLimiter, networkOf, type RateLimitOptions } from '../../../src/http/rate-limit.ts';
import { appHeaders, startToyServer, type ToyServer } from './toy-server.ts';

const limited = (options: RateLimitOptions): Promise<ToyServer> =>
  startToyServer({ rateLimiter: createRateLimiter(options) });

const refusal = {
  error: 'Too many requests. Please wait to try again.',
  code: 'too_many_requests',
};

test('every response shows the remaining allowance, the first beyond the limit is refused', async () => {
  await using server = await limited({ points: 2, durationSeconds: 60 });
  const answers = [];
  for (let turn = 0; turn < 3; turn += 1) answers.push(await server.fetch('GET', '/v1/toys'));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(answers[2]?.body).toEqual(refusal);
  const reported = answers.map(({ headers }) => [
    headers.get('x-ratelimit-limit'),
    headers.get('x-ratelimit-remaining'),
    headers.get('x-ratelimit-reset'),
    headers.get('ratelimit'),
    headers.get('ratelimit-policy'),
    headers.get('retry-after'),
  ]);
  expect(reported).toEqual([
    ['2', '1', '60', '"app";r=1;t=60', '"app";q=2;w=60', null],
    ['2', '0', '60', '"app";r=0;t=60', '"app";q=2;w=60', null],
    ['2', '0', '60', '"app";r=0;t=60', '"app";q=2;w=60', '60'],
  ]);
});

test('a burst may use what a steady caller has saved', async () => {
  await using server = await limited({ points: 2, durationSeconds: 60, burst: 5 });
  const statuses = [];
  for (let turn = 0; turn < 6; turn += 1) statuses.push((await server.fetch('GET', '/v1/toys')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test('the allowance refills with time', async () => {
  await using server = await limited({ points: 1, durationSeconds: 1 });
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(429);
  await new Promise((resolve) => setTimeout(resolve, 1_050));
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
});

test('an operation can have its own limit in addition to that of the app', async () => {
  await using server = await limited({
    points: 100,
    durationSeconds: 60,
    operations: { getToy: { points: 1, durationSeconds: 30 } },
  });
  const first = await server.fetch('GET', '/v1/toys/bear');
  expect(first.headers.get('ratelimit-policy')).toBe('"getToy";q=1;w=30');
  expect((await server.fetch('GET', '/v1/toys/bear')).status).toBe(429);
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
});

describe('the counted party', () => {
  test('refused credentials do not count against the app', async () => {
    await using server = await limited({ points: 1, durationSeconds: 60 });
    const wrong = { ...appHeaders, authorization: 'Basic d3Jvbmc6d3Jvbmc=' };
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await server.fetch('GET', '/v1/toys', { headers: wrong })).status).toBe(401);
    }
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  });

  test('a public operation counts against the address, not the app', async () => {
    await using server = await limited({ points: 1, durationSeconds: 60 });
    expect((await server.fetch('GET', '/v1/catalogue.json', { headers: {} })).status).toBe(200);
    expect((await server.fetch('GET', '/v1/catalogue.json', { headers: {} })).status).toBe(429);
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  });

  test('an app id that is sent to a public operation without credentials is not charged', async () => {
    await using server = await limited({ points: 3, durationSeconds: 60 });
    const named = { 'service-app-id': appHeaders['service-app-id'] };
    for (let turn = 0; turn < 5; turn += 1)
      await server.fetch('GET', '/v1/catalogue.json', { headers: named });
    expect((await server.fetch('GET', '/v1/toys')).headers.get('x-ratelimit-remaining')).toBe('2');
  });

  test('a user counts against the share of the users of the app, not against the app', async () => {
    const { countRequest } = createRateLimiter({ points: 10, durationSeconds: 60 });
    const request = (userId?: string) =>
      ({ app: { id: 'acme' }, userId, remoteAddress: '::1', headers: {} }) as unknown as HttpExchange;
    await countRequest(request('alice'));
    await countRequest(request('alice'));
    await expect(countRequest(request('alice'))).rejects.toMatchObject({ code: 'too_many_requests' });
    await expect(countRequest(request('bob'))).resolves.toMatchObject({ 'x-ratelimit-remaining': '1' });
    await expect(countRequest(request())).resolves.toMatchObject({ 'x-ratelimit-remaining': '9' });
  });

  test('wallets, users and signatures are charged in addition to the request', async () => {
    const { countRequest, countWork } = createRateLimiter({ points: 100, durationSeconds: 60 });
    const request = (body: unknown, signatures = 1, bytes = 100) =>
      ({
        app: { id: 'acme' },
        body,
        rawBody: Buffer.alloc(bytes),
        headers: { 'service-authorization-signature': Array(signatures).fill('s').join(',') },
      }) as unknown as HttpExchange;
    await countRequest(request({}));
    expect(await countWork(request({ chain_type: 'ethereum' }))).toBeUndefined();
    const left = async (body: unknown, signatures?: number) =>
      (await countWork(request(body, signatures)))?.['x-ratelimit-remaining'];
    expect(await left({ wallets: Array(20).fill({}) })).toBe('79');
    expect(await left({ users: [{ wallets: [{}, {}] }, {}] })).toBe('75');
    expect(await left({}, 2)).toBeUndefined();
    expect(await left({}, 30)).toBe('61');
    const large = await countWork(request({}, 1, 1_000_000));
    expect(large?.['x-ratelimit-remaining']).toBe('46');
  });

  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
  ])('%s is counted as %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
