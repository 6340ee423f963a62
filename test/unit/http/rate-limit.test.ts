import { describe, expect, test } from 'vitest';
import { createRateLimit, type RateLimitOptions } from '../../../src/http/rate-limit.ts';
import { appHeaders, startToyServer, type ToyServer } from './toy-server.ts';

const limited = (options: RateLimitOptions): Promise<ToyServer> =>
  startToyServer({ countRequest: createRateLimit(options) });

const refusal = {
  error: 'Too many requests. Please wait to try again.',
  code: 'too_many_requests',
};

test('every answer tells what is left, the first beyond the limit is refused', async () => {
  await using server = await limited({ points: 2, durationSeconds: 60 });
  const answers = [];
  for (let turn = 0; turn < 3; turn += 1) answers.push(await server.fetch('GET', '/v1/toys'));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(answers[2]?.body).toEqual(refusal);
  const told = answers.map(({ headers }) => [
    headers.get('x-ratelimit-limit'),
    headers.get('x-ratelimit-remaining'),
    headers.get('x-ratelimit-reset'),
    headers.get('ratelimit'),
    headers.get('ratelimit-policy'),
    headers.get('retry-after'),
  ]);
  expect(told).toEqual([
    ['2', '1', '60', '"app";r=1;t=60', '"app";q=2;w=60', null],
    ['2', '0', '60', '"app";r=0;t=60', '"app";q=2;w=60', null],
    ['2', '0', '60', '"app";r=0;t=60', '"app";q=2;w=60', '60'],
  ]);
});

test('a rush may use what a steady caller has saved', async () => {
  await using server = await limited({ points: 2, durationSeconds: 60, burst: 5 });
  const statuses = [];
  for (let turn = 0; turn < 6; turn += 1) statuses.push((await server.fetch('GET', '/v1/toys')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test('time gives back what was used', async () => {
  await using server = await limited({ points: 1, durationSeconds: 1 });
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(429);
  await new Promise((resolve) => setTimeout(resolve, 1_050));
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
});

test('an operation may have a limit of its own beside the one of the app', async () => {
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

describe('who is counted', () => {
  test('refused credentials use up nothing of the app', async () => {
    await using server = await limited({ points: 1, durationSeconds: 60 });
    const wrong = { ...appHeaders, authorization: 'Basic d3Jvbmc6d3Jvbmc=' };
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await server.fetch('GET', '/v1/toys', { headers: wrong })).status).toBe(401);
    }
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  });

  test('an operation open to all counts the address, not the app', async () => {
    await using server = await limited({ points: 1, durationSeconds: 60 });
    expect((await server.fetch('GET', '/v1/catalogue.json', { headers: {} })).status).toBe(200);
    expect((await server.fetch('GET', '/v1/catalogue.json', { headers: {} })).status).toBe(429);
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  });
});
