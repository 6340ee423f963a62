import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type Admission,
  type AdmissionLimits,
  createAdmission,
  measureLoopDelay,
} from '../../../../src/server/admission.ts';
import { RequestAbortedError } from '../../../../src/server/read-body.ts';
import type { RequestState } from '../../../../src/server/request-state.ts';
import { appHeaders, echo, keptLog, startToyServer, toyOperations } from '../toy-server.ts';

const limits: AdmissionLimits = {
  requests: 1_000,
  concurrent: { reads: 4, writes: 2, signing: 2 },
  delayMs: 20,
};

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const toy = (id: string) => toyOperations.find((operation) => operation.id === id);
const [read, write, sign] = [toy('listToys'), toy('createToy'), toy('playWithToy')];

/** An admission control with a simulated load. */
function controlled(more: Partial<AdmissionLimits> = {}) {
  const load = { turn: 1, elapsedMs: 0 };
  let nowMs = 1_000_000;
  const log = keptLog();
  const admission = createAdmission({
    limits: { ...limits, ...more },
    signing: ['playWithToy'],
    loop: { current: () => ({ ...load }) },
    now: () => nowMs,
    log,
  });
  const pass = (ms: number): void => {
    nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  return {
    admission,
    log,
    pass,
    /** The same turn of the event loop continues with this request. */
    arrive(operation: typeof read, afterMs = 0): number {
      load.elapsedMs += afterMs;
      pass(afterMs);
      const refusal = admission.enter(operation);
      if (refusal === undefined) admission.leave();
      return refusal?.status ?? 200;
    },
    beginTurn() {
      load.turn += 1;
      load.elapsedMs = 0;
    },
    begin(operation: typeof read, client = { destroyed: false }) {
      const state = { route: { operation, params: {} }, response: client } as unknown as RequestState;
      const begun = admission.begin(state).then(({ leave }) => leave);
      // Looked at later.
      begun.catch(() => undefined);
      return begun;
    },
  };
}

/** The same at the begin of a turn, after requests were refused in those before. */
function overloaded() {
  const load = controlled();
  const statuses: number[] = [];
  for (let turn = 0; turn < 10; turn += 1) {
    for (let count = 0; count < 100; count += 1) statuses.push(load.arrive(read, 1));
    load.beginTurn();
  }
  expect(statuses).toContain(503);
  return load;
}

/** The state of a wait after all due callbacks. */
async function outcomeOf(waiting: Promise<unknown>): Promise<unknown> {
  await Promise.resolve();
  return Promise.race([
    waiting.then(
      () => 'begun',
      (error: Error) => error,
    ),
    nextTurn('waits'),
  ]);
}

describe('requests that wait for the event loop', () => {
  test('requests that wait for the event loop are all admitted in a burst, however long its first turn is', () => {
    const { arrive } = controlled();
    const statuses = Array.from({ length: 100 }, () => arrive(sign, 5));
    expect(statuses.every((status) => status === 200)).toBe(true);
  });

  test('requests that wait for the event loop are refused once they keep being late, each class beyond its share of a turn', () => {
    const { arrive, beginTurn, admission } = controlled();
    for (let turn = 0; turn < 6; turn += 1) {
      for (let count = 0; count < 100; count += 1) arrive(read, 1);
      beginTurn();
    }
    const statuses = (operation: typeof read, count: number, afterMs: number) =>
      Array.from({ length: count }, () => arrive(operation, afterMs));
    // The first 20 ms of a turn are for the first caller.
    expect(statuses(read, 20, 1)).toEqual(Array(20).fill(200));
    // The share of reads is used up; signing has its own.
    expect(statuses(read, 3, 1)).toEqual([503, 503, 503]);
    expect(statuses(sign, 3, 0)).toEqual([200, 200, 503]);
    expect(statuses(write, 3, 0)).toEqual([200, 200, 503]);
    expect(statuses(undefined, 1, 0)).toEqual([503]);
    expect(countsOf(admission)).toEqual({ requests: 0, waiting: 0 });
  });

  test('requests that wait for the event loop are refused at once when they are late again after a turn that was short', () => {
    const { arrive, beginTurn } = overloaded();
    arrive(read);
    beginTurn();
    const statuses = Array.from({ length: 100 }, () => arrive(read, 1));
    expect(statuses.indexOf(503)).toBe(20);
  });

  test('requests that wait for the event loop are admitted again after a second of turns that were short', () => {
    const { arrive, beginTurn, pass } = overloaded();
    for (let turn = 0; turn < 4; turn += 1) {
      arrive(read);
      pass(300);
      beginTurn();
    }
    expect(Array.from({ length: 100 }, () => arrive(read, 1))).not.toContain(503);
  });

  test('requests that wait for the event loop are admitted after a pause, whatever was before it', () => {
    const { arrive, pass } = overloaded();
    pass(10_000);
    expect(Array.from({ length: 100 }, () => arrive(read, 1))).not.toContain(503);
  });

  test('get a Retry-After header, and are logged once a second', () => {
    const { admission, log, pass } = controlled({ requests: 0 });
    for (let count = 0; count < 50; count += 1) {
      expect(admission.enter(read)).toEqual({
        status: 503,
        body: { error: 'the server has more requests than it can answer in time' },
        headers: { 'retry-after': '1' },
      });
      pass(50);
    }
    expect(log.lines.map(({ level, fields }) => ({ level, refused: fields.refused }))).toEqual([
      { level: 'warn', refused: 1 },
      { level: 'warn', refused: 20 },
      { level: 'warn', refused: 20 },
    ]);
  });
});

describe('units of work', () => {
  test('of one class run concurrently up to its limit, then in order of arrival, without affecting other classes', async () => {
    const { begin, admission } = controlled();
    const [first, second] = await Promise.all([begin(write), begin(write)]);
    const [third, fourth] = [begin(write), begin(write)];
    expect([await outcomeOf(third), await outcomeOf(fourth)]).toEqual(['waits', 'waits']);
    expect(await outcomeOf(begin(read))).toBe('begun');
    expect(await outcomeOf(begin(sign))).toBe('begun');
    first();
    // Ending it twice frees one place.
    first();
    expect([await outcomeOf(third), await outcomeOf(fourth)]).toEqual(['begun', 'waits']);
    second();
    expect(await outcomeOf(fourth)).toBe('begun');
    expect(countsOf(admission).waiting).toBe(0);
  });

  test('units of work of a burst wait for up to three seconds', async () => {
    const { begin, pass } = controlled();
    await Promise.all([begin(write), begin(write)]);
    const waiting = begin(write);
    pass(2_999);
    expect(await outcomeOf(waiting)).toBe('waits');
    pass(2);
    expect(await outcomeOf(waiting)).toMatchObject({ code: 'unavailable', headers: { 'retry-after': '1' } });
  });

  test('behind a persistent queue wait for 20 ms', async () => {
    const { begin, pass, admission } = controlled();
    await Promise.all([begin(write), begin(write)]);
    const early = begin(write);
    pass(600);
    const late = begin(write);
    pass(21);
    expect(await outcomeOf(early)).toBe('waits');
    expect(await outcomeOf(late)).toMatchObject({ code: 'unavailable' });
    expect(countsOf(admission).waiting).toBe(1);
  });

  test('behind a queue that returns within a second wait for 20 ms, later for up to three seconds', async () => {
    const { begin, pass } = controlled();
    const [first] = await Promise.all([begin(write), begin(write)]);
    const early = begin(write);
    pass(600);
    const late = begin(write);
    pass(21);
    expect(await outcomeOf(late)).toMatchObject({ code: 'unavailable' });
    first();
    const second = await early;
    const returned = begin(write);
    pass(21);
    expect(await outcomeOf(returned)).toMatchObject({ code: 'unavailable' });
    second();
    await begin(write);
    pass(1_001);
    const burst = begin(write);
    pass(2_999);
    expect(await outcomeOf(burst)).toBe('waits');
  });

  test('units of work are refused immediately when too many wait already', async () => {
    const { begin, admission } = controlled();
    const refused: unknown[] = [];
    for (let count = 0; count < 300; count += 1) begin(sign).catch((error) => refused.push(error));
    await nextTurn();
    expect(countsOf(admission).waiting).toBe(256);
    expect(refused).toHaveLength(300 - 2 - 256);
  });

  test('units of work of disconnected clients are not started', async () => {
    const { begin, admission } = controlled();
    const leaves = await Promise.all([begin(write), begin(write)]);
    const clients = Array.from({ length: 40 }, () => ({ destroyed: false }));
    const waiting = clients.map((client) => begin(write, client));
    const outcomes = Promise.allSettled(waiting);
    for (const client of clients) client.destroyed = true;
    for (const leave of leaves) leave();
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(RequestAbortedError) });
    }
    expect(countsOf(admission)).toEqual({ requests: 0, waiting: 0 });
    // Their places are free again.
    expect(await outcomeOf(Promise.all([begin(write), begin(write)]))).toBe('begun');
  });
});

test('a turn of the event loop lasts as long as there are requests to read', async () => {
  vi.useRealTimers();
  const loop = measureLoopDelay();
  const first = loop.current();
  expect(first.elapsedMs).toBe(0);
  const endMs = performance.now() + 5;
  while (performance.now() < endMs);
  const later = loop.current();
  expect(later.turn).toBe(first.turn);
  expect(later.elapsedMs).toBeGreaterThanOrEqual(5);
  await nextTurn();
  const next = loop.current();
  expect(next.turn).toBe(first.turn + 1);
  expect(next.elapsedMs).toBe(0);
});

test('a refused request reaches no operation, and its body is dropped', async () => {
  vi.useRealTimers();
  const { admission } = controlled({ requests: 1 });
  const held = Promise.withResolvers<void>();
  await using server = await startToyServer({
    admission,
    run: async (state) => {
      await held.promise;
      return echo(state);
    },
  });
  const admitted = server.fetch('GET', '/v1/toys');
  await expect.poll(() => admission.counts().requests).toBe(1);
  const refused = await server.fetch('POST', '/v1/toys', {
    headers: { ...appHeaders, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bear', note: 'x'.repeat(500_000) }),
  });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('x-request-id')).toBe('request-2');
  held.resolve();
  expect((await admitted).status).toBe(200);
  expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
  expect(countsOf(admission)).toEqual({ requests: 0, waiting: 0 });
  expect(server.log.lines.map(({ fields }) => fields.status)).toEqual([200, 200]);
});

/** The counts of all kinds of requests together. */
function countsOf(admission: Admission): { requests: number; waiting: number } {
  const { requests, waiting } = admission.counts();
  return { requests, waiting: waiting.reads + waiting.writes + waiting.signing };
}
