import { expect, test } from 'vitest';
import { createRateLimiter, rateLimitOfApp } from '../../../../src/server/rate-limit.ts';
import type { RequestState } from '../../../../src/server/request-state.ts';

const many = rateLimitOfApp({ perSecond: 10_000, burst: 10_000 }, 240);

function request(id: string, body: unknown): RequestState {
  return {
    app: { id: 'acme' },
    hasAppSecret: true,
    headers: {},
    rawBody: '',
    route: { operation: { id } },
    body,
  } as unknown as RequestState;
}

const one = request('createUser', {});
const batchOf = (count: number) => request('batchCreateUsers', { users: Array(count).fill({}) });

test('an app can create 240 users per minute, one by one or in batches', async () => {
  const { countWork } = createRateLimiter(many);
  const left = async (state: RequestState) => (await countWork(state))?.['x-ratelimit-remaining'];
  expect(await left(one)).toBe('239');
  expect(await left(batchOf(20))).toBe('219');
  expect(await left(batchOf(3))).toBe('216');
  for (let turn = 0; turn < 10; turn += 1) await countWork(batchOf(20));
  expect(await left(batchOf(16))).toBe('0');
  await expect(countWork(one)).rejects.toMatchObject({ code: 'too_many_requests' });
  await expect(countWork(batchOf(1))).rejects.toMatchObject({ code: 'too_many_requests' });
  expect(await countWork(request('getUser', undefined))).toBeUndefined();
});
