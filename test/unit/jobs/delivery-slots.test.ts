import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDeliverySlots, type EndpointSlots } from '../../../src/jobs/delivery-slots.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets everything that is ready happen. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

interface Request {
  end(isDelivered: boolean): void;
}

/** An endpoint whose requests last until the test ends them. */
function endpointOf(slots: ReturnType<typeof createDeliverySlots>, appId: string, id: string) {
  const endpoint: EndpointSlots = slots.open(id);
  endpoint.identify(appId, false);
  const underWay: Request[] = [];
  const done: Promise<unknown>[] = [];
  return {
    ...{ appId, underWay, done },
    close: () => endpoint.close(),
    send(count: number) {
      for (let turn = 0; turn < count; turn += 1)
        done.push(
          endpoint.enter(async () => {
            const { promise, resolve } = Promise.withResolvers<{ isDelivered: boolean }>();
            underWay.push({ end: (isDelivered) => resolve({ isDelivered }) });
            return promise;
          }),
        );
    },
    /** Ends all that are under way, and lets the next ones begin. */
    async answer(isDelivered = true) {
      for (const request of underWay.splice(0)) request.end(isDelivered);
      await turn();
    },
  };
}

test('an endpoint gets two requests at once until the first success, then sixteen, and one while it fails', async () => {
  const slots = createDeliverySlots();
  const endpoint = endpointOf(slots, 'acme', 'one');
  endpoint.send(40);
  await turn();
  expect(endpoint.underWay).toHaveLength(2);
  await endpoint.answer(true);
  expect(endpoint.underWay).toHaveLength(16);
  await endpoint.answer(false);
  expect(endpoint.underWay).toHaveLength(1);
  await endpoint.answer(true);
  expect(endpoint.underWay).toHaveLength(16);
  // The next worker of the endpoint knows it.
  const again = endpointOf(slots, 'acme', 'one');
  again.send(20);
  await turn();
  expect(again.underWay).toHaveLength(16);
});

test('an endpoint that becomes slow gets no more than four', async () => {
  const slots = createDeliverySlots();
  const endpoint = endpointOf(slots, 'acme', 'one');
  endpoint.send(60);
  await turn();
  await endpoint.answer();
  vi.advanceTimersByTime(1_000);
  expect(slots.counts()).toEqual({ all: 16, unproven: 16 });
  for (const request of endpoint.underWay.splice(0, 14)) request.end(true);
  await turn();
  expect(endpoint.underWay).toHaveLength(4);
  await endpoint.answer();
  expect(endpoint.underWay).toHaveLength(16);
});

test('hundreds that hang keep a part of the slots, and the others work as if they were alone', async () => {
  const slots = createDeliverySlots();
  const hanging = Array.from({ length: 200 }, (_, at) =>
    endpointOf(slots, `app-${at % 10}`, `hanging-${at}`),
  );
  for (const endpoint of hanging) endpoint.send(50);
  await turn();
  const held = () => hanging.reduce((sum, { underWay }) => sum + underWay.length, 0);
  expect(held()).toBe(96);
  const healthy = [endpointOf(slots, 'acme', 'a'), endpointOf(slots, 'acme', 'b')];
  for (const endpoint of healthy) endpoint.send(100);
  await turn();
  // They are tried at once although the slots of unproven endpoints are used up.
  expect(slots.counts()).toEqual({ all: 98, unproven: 98 });
  for (let round = 0; round < 3; round += 1) for (const endpoint of healthy) await endpoint.answer();
  expect(healthy.map(({ underWay }) => underWay.length)).toEqual([16, 16]);
  expect(slots.counts()).toEqual({ all: 96 + 32, unproven: 96 });
  // After their timeout each of them has one at most.
  for (const endpoint of hanging) await endpoint.answer(false);
  expect(Math.max(...hanging.map(({ underWay }) => underWay.length))).toBeLessThanOrEqual(2);
  expect(held()).toBeLessThanOrEqual(96);
});

test('slots that become free go to the app with the fewest requests', async () => {
  const slots = createDeliverySlots();
  const many = Array.from({ length: 20 }, (_, at) => endpointOf(slots, 'many', `many-${at}`));
  for (const endpoint of many) endpoint.send(100);
  for (let round = 0; round < 6; round += 1) for (const endpoint of many) await endpoint.answer();
  expect(slots.counts().all).toBe(128);
  const others = ['x', 'y', 'z'].map((appId) =>
    Array.from({ length: 20 }, (_, at) => endpointOf(slots, appId, `${appId}-${at}`)),
  );
  for (const endpoint of others.flat()) endpoint.send(1_000);
  for (let round = 0; round < 6; round += 1) for (const endpoint of others.flat()) await endpoint.answer();
  expect(slots.counts().all).toBe(256);
  for (const endpoint of many) await endpoint.answer();
  expect(slots.counts().all).toBe(256);
  const of = (endpoints: readonly { underWay: unknown[] }[]) =>
    endpoints.reduce((sum, { underWay }) => sum + underWay.length, 0);
  for (const app of others) expect(of(app)).toBeGreaterThanOrEqual(40);
});

test('a worker that ends drops what waits for a slot', async () => {
  const slots = createDeliverySlots();
  const endpoint = endpointOf(slots, 'acme', 'one');
  endpoint.send(5);
  await turn();
  endpoint.close();
  endpoint.send(1);
  await endpoint.answer();
  const outcomes = await Promise.all(endpoint.done);
  expect(outcomes).toEqual([{ isDelivered: true }, { isDelivered: true }, ...Array(4).fill(undefined)]);
  expect(slots.counts()).toEqual({ all: 0, unproven: 0 });
});

test('for any order of events: the limits hold, no slot is lost, and everything is sent', async () => {
  const step = fc.oneof(
    fc.record({ send: fc.nat({ max: 59 }), count: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ answer: fc.nat({ max: 59 }), isDelivered: fc.boolean() }),
    fc.record({ waitMs: fc.constantFrom(100, 1_000) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const slots = createDeliverySlots();
      const endpoints = Array.from({ length: 60 }, (_, at) => endpointOf(slots, `app-${at % 4}`, `${at}`));
      for (const each of steps) {
        if ('send' in each) endpoints[each.send]!.send(each.count);
        else if ('answer' in each) await endpoints[each.answer]!.answer(each.isDelivered);
        else vi.advanceTimersByTime(each.waitMs);
        await turn();
        const held = endpoints.reduce((sum, { underWay }) => sum + underWay.length, 0);
        expect(slots.counts().all).toBe(held);
        expect(held).toBeLessThanOrEqual(256);
        expect(endpoints.every(({ underWay }) => underWay.length <= 16)).toBe(true);
      }
      while (slots.counts().all > 0) for (const endpoint of endpoints) await endpoint.answer();
      await Promise.all(endpoints.flatMap(({ done }) => done));
      expect(slots.counts()).toEqual({ all: 0, unproven: 0 });
    }),
    { numRuns: 50 },
  );
});
