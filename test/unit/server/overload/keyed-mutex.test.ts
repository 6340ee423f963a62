import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../../../src/server/keyed-mutex.ts';

const refusal = { code: 'unavailable', headers: { 'retry-after': '1' } };

test('a mutex is acquired in the order of arrival, and those of other keys at once', async () => {
  const { acquire } = createKeyedMutex();
  const order: string[] = [];
  const first = await acquire('wallet');
  const others = ['second', 'third'].map(async (name) => {
    const { hasWaited, release } = await acquire('wallet');
    order.push(name);
    release();
    return hasWaited;
  });
  const elsewhere = await acquire('other wallet');
  expect([first.hasWaited, elsewhere.hasWaited, order]).toEqual([false, false, []]);
  first.release();
  expect(await Promise.all(others)).toEqual([true, true]);
  expect(order).toEqual(['second', 'third']);
  expect((await acquire('wallet')).hasWaited).toBe(false);
});

test('who has waited for too long gives up, and is no longer in the way of others', async () => {
  const { acquire } = createKeyedMutex(20);
  const first = await acquire('wallet');
  await expect(acquire('wallet')).rejects.toMatchObject(refusal);
  first.release();
  const next = await acquire('wallet');
  expect(next.hasWaited).toBe(false);
  next.release();
});

test('257 cannot wait at once', async () => {
  const { acquire } = createKeyedMutex();
  const first = await acquire('wallet');
  const waiting = Array.from({ length: 256 }, async () => (await acquire('wallet')).release());
  await expect(acquire('wallet')).rejects.toMatchObject(refusal);
  first.release();
  await Promise.all(waiting);
});
