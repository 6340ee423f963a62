import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../../src/errors.ts';
import { createRateLimiter, networkOf, type RateLimitOptions } from '../../../../src/server/rate-limit.ts';
import type { RequestState } from '../../../../src/server/request-state.ts';
import { appHeaders, startToyServer, type ToyServer } from '../toy-server.ts';

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
    ['2', '1', '30', '"app";r=1;t=30', '"app";q=2;w=60', null],
    ['2', '0', '60', '"app";r=0;t=60', '"app";q=2;w=60', null],
    ['2', '0', '60', '"app";r=0;t=60', '"app";q=2;w=60', '30'],
  ]);
});

test('a burst may use what a steady caller has saved', async () => {
  await using server = await limited({ points: 2, durationSeconds: 60, burst: 5 });
  const statuses = [];
  for (let turn = 0; turn < 6; turn += 1) statuses.push((await server.fetch('GET', '/v1/toys')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test('the allowance refills with time', async () => {
  let nowMs = 0;
  await using server = await limited({ points: 2, durationSeconds: 1, now: () => nowMs });
  const statuses = async () => [
    (await server.fetch('GET', '/v1/toys')).status,
    (await server.fetch('GET', '/v1/toys')).status,
  ];
  expect(await statuses()).toEqual([200, 200]);
  expect(await statuses()).toEqual([429, 429]);
  nowMs += 500;
  expect(await statuses()).toEqual([200, 429]);
  nowMs += 3_600_000;
  expect(await statuses()).toEqual([200, 200]);
  expect(await statuses()).toEqual([429, 429]);
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
      ({
        app: { id: 'acme' },
        hasAppSecret: userId === undefined,
        userId,
        headers: {},
      }) as unknown as RequestState;
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
        hasAppSecret: true,
        body,
        rawBody: Buffer.alloc(bytes),
        headers: { 'service-authorization-signature': Array(signatures).fill('s').join(',') },
      }) as unknown as RequestState;
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

  test('a caller that only names an app is charged by its address, also for signatures and operations', async () => {
    const { countRequest, countWork } = createRateLimiter({
      points: 10,
      durationSeconds: 60,
      operations: { createUser: { points: 1, durationSeconds: 60 } },
    });
    const request = (hasAppSecret: boolean) =>
      ({
        ...{ app: { id: 'acme' }, hasAppSecret, remoteAddress: '203.0.113.7', rawBody: '', body: {} },
        headers: { 'service-authorization-signature': Array(6).fill('s').join(',') },
        route: { operation: { id: 'createUser' } },
      }) as unknown as RequestState;
    await countRequest(request(false));
    await countWork(request(false));
    await expect(countWork(request(false))).rejects.toMatchObject({ code: 'too_many_requests' });
    expect((await countRequest(request(true)))['x-ratelimit-remaining']).toBe('9');
    await expect(countWork(request(true))).resolves.toMatchObject({ 'x-ratelimit-remaining': '0' });
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

describe('wrong one-time codes', () => {
  const wrong = () => Promise.reject(new ApiError('invalid_credentials'));
  const right = () => Promise.resolve('in');

  function limiter() {
    const clock = { nowMs: 0 };
    const refused: string[] = [];
    const { chargeGuess } = createRateLimiter({
      ...{ points: 1_000, durationSeconds: 1 },
      now: () => clock.nowMs,
      onRefused: (limit) => refused.push(limit),
    });
    const guess = async (
      caller: Partial<RequestState>,
      body: unknown,
      run: () => Promise<unknown> = wrong,
    ): Promise<unknown> => {
      const state = {
        ...{ app: { id: 'acme' }, hasAppSecret: false, remoteAddress: '203.0.113.7', body },
        ...caller,
        route: { operation: { id: 'authenticatePasswordless' } },
      } as unknown as RequestState;
      try {
        state.guess = chargeGuess(state);
        const result = await run();
        state.guess?.settle(undefined);
        return result;
      } catch (error) {
        state.guess?.settle(error);
        return (error as ApiError).code;
      }
    };
    return { clock, refused, guess };
  }
  const of = (email: string) => ({ email, code: '000000' });

  test('of one address are limited for all accounts of an app together', async () => {
    const { clock, refused, guess } = limiter();
    const outcomes = [];
    for (let turn = 0; turn < 12; turn += 1) outcomes.push(await guess({}, of(`user-${turn}@example.com`)));
    expect(outcomes).toEqual([
      ...Array(10).fill('invalid_credentials'),
      ...Array(2).fill('too_many_requests'),
    ]);
    expect(refused).toEqual(['one_time_codes', 'one_time_codes']);
    // Another address, another app, and the app with its secret are not concerned.
    expect(await guess({ remoteAddress: '198.51.100.1' }, of('a@example.com'), right)).toBe('in');
    expect(await guess({ app: { id: 'other' } }, of('a@example.com'), right)).toBe('in');
    expect(await guess({ hasAppSecret: true }, of('a@example.com'), right)).toBe('in');
    clock.nowMs += 60_000;
    expect(await guess({}, of('a@example.com'))).toBe('invalid_credentials');
    expect(await guess({}, of('a@example.com'), right)).toBe('too_many_requests');
  });

  test('for one account are limited, from whatever address and however it is spelled', async () => {
    const { guess } = limiter();
    const spellings = ['a@example.com', 'A@example.com', 'a@EXAMPLE.com'];
    const outcomes = [];
    for (let turn = 0; turn < 22; turn += 1)
      outcomes.push(await guess({ remoteAddress: `203.0.113.${turn}` }, of(spellings[turn % 3]!)));
    expect(outcomes.filter((outcome) => outcome === 'invalid_credentials')).toHaveLength(20);
    // Nor by those with the secret, who have a count of their own.
    expect(await guess({ hasAppSecret: true }, of('a@example.com'), right)).toBe('in');
    const phones = ['+1 (555) 555-0100', '5555550100', '+15555550100', '\uff15555550100'];
    for (let turn = 0; turn < 20; turn += 1)
      await guess({ hasAppSecret: true }, { phone_number: phones[turn % 4], code: '1' });
    const next = await guess({ hasAppSecret: true }, { phone_number: '+1 555 555 0100', code: '1' });
    expect(next).toBe('too_many_requests');
  });

  test('that arrive at once do not all count as the first, and right codes use up nothing', async () => {
    const { guess } = limiter();
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => guess({}, of('a@example.com'))));
    expect(outcomes.filter((outcome) => outcome === 'invalid_credentials')).toHaveLength(10);
    const other = { remoteAddress: '198.51.100.1' };
    for (let turn = 0; turn < 30; turn += 1)
      expect(await guess(other, of('b@example.com'), right)).toBe('in');
  });
});
