import { expect, test } from 'vitest';
import type { HttpExchange } from '../../../src/http/http-exchange.ts';
import { createRateLimit, rateLimitOfApp } from '../../../src/http/rate-limit.ts';

const many = rateLimitOfApp({ perSecond: 10_000, burst: 10_000 }, 240);

function request(id: string, body: unknown): HttpExchange {
  const rawBody = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return { app: { id: 'acme' }, route: { operation: { id } }, rawBody } as unknown as HttpExchange;
}

const one = request('createUser', {});
const batchOf = (count: number) => request('batchCreateUsers', { users: Array(count).fill({}) });

test('an app makes 240 users a minute, alone or in batches', async () => {
  const count = createRateLimit(many);
  const left = async (exchange: HttpExchange) => (await count(exchange))['x-ratelimit-remaining'];
  expect(await left(one)).toBe('239');
  expect(await left(batchOf(20))).toBe('219');
  expect(await left(batchOf(3))).toBe('216');
  for (let turn = 0; turn < 10; turn += 1) await count(batchOf(20));
  expect(await left(batchOf(16))).toBe('0');
  await expect(count(one)).rejects.toMatchObject({ code: 'too_many_requests' });
  await expect(count(batchOf(1))).rejects.toMatchObject({ code: 'too_many_requests' });
  await expect(count(request('getUser', ''))).resolves.toMatchObject({ 'x-ratelimit-limit': '10000' });
});

test('what is no batch, and one that is too large, are not taken at their word', async () => {
  const count = createRateLimit(many);
  const bodies = ['', '{', 'null', [], {}, { users: 7 }, { users: [] }];
  for (const body of bodies) await count(request('batchCreateUsers', body));
  expect((await count(batchOf(5000)))['x-ratelimit-remaining']).toBe(String(240 - bodies.length - 20));
});
