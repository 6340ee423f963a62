import { expect, test } from 'vitest';
import { createTurns } from '../../../../src/server/keyed-mutex.ts';

const refusal = { code: 'unavailable', headers: { 'retry-after': '1' } };

test('turns are taken in the order of arrival, and those of other names at once', async () => {
  const { take } = createTurns();
  const order: string[] = [];
  const first = await take('wallet');
  const others = ['second', 'third'].map(async (name) => {
    const { hasWaited, end } = await take('wallet');
    order.push(name);
    end();
    return hasWaited;
  });
  const elsewhere = await take('other wallet');
  expect([first.hasWaited, elsewhere.hasWaited, order]).toEqual([false, false, []]);
  first.end();
  expect(await Promise.all(others)).toEqual([true, true]);
  expect(order).toEqual(['second', 'third']);
  expect((await take('wallet')).hasWaited).toBe(false);
});

test('who has waited for too long gives up, and is no longer in the way of others', async () => {
  const { take } = createTurns(20);
  const first = await take('wallet');
  await expect(take('wallet')).rejects.toMatchObject(refusal);
  first.end();
  const next = await take('wallet');
  expect(next.hasWaited).toBe(false);
  next.end();
});

test('257 cannot wait at once', async () => {
  const { take } = createTurns();
  const first = await take('wallet');
  const waiting = Array.from({ length: 256 }, async () => (await take('wallet')).end());
  await expect(take('wallet')).rejects.toMatchObject(refusal);
  first.end();
  await Promise.all(waiting);
});
