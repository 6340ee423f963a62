import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createRateLimiter, type RateLimitOptions } from '../../../src/server/rate-limit.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { keptLog, startToyServer } from '../../unit/server/toy-server.ts';

let url: string;
let pool: Pool;
beforeAll(async () => {
  url = await freshPostgres();
  pool = new Pool({ connectionString: url, max: 4 });
});
beforeEach(async () => {
  await pool.query('truncate rate_levels');
});
afterAll(() => pool.end());

// A whole hour, so that next to nothing comes back during the test.
const hourly = { durationSeconds: 3_600 };

/** One process; `statements` are those that it sends. */
async function startProcess(options: Omit<RateLimitOptions, 'postgres'>, database: Pool = pool) {
  const log = keptLog();
  const statements: string[] = [];
  let isStopped = false;
  let last: Promise<unknown> = Promise.resolve();
  const counted = {
    query: (statement: { text: string; values?: unknown[] }) => {
      if (isStopped) return Promise.reject(new Error('the process has ended'));
      statements.push(statement.text);
      const result = database.query(statement);
      last = result.catch(() => undefined);
      return result;
    },
  };
  const rateLimiter = createRateLimiter({ ...options, postgres: { pool: counted, log } });
  const toys = await startToyServer({ rateLimiter });
  // An ended process settles nothing more, so the next test has the table to itself.
  const server = {
    ...toys,
    async [Symbol.asyncDispose]() {
      isStopped = true;
      await last;
      await toys[Symbol.asyncDispose]();
    },
  };
  return { server, log, statements };
}

const get = async ({ server }: Awaited<ReturnType<typeof startProcess>>) =>
  (await server.fetch('GET', '/v1/toys')).status;

const sharedLevel = async (): Promise<number> =>
  Number((await pool.query('select coalesce(sum(level), 0) as level from rate_levels')).rows[0].level);

test('processes grant together what one may, and at most once as much again before they have settled', async () => {
  const points = 20;
  const first = await startProcess({ points, ...hourly });
  const second = await startProcess({ points, ...hourly });
  await using _first = first.server;
  await using _second = second.server;
  for (let turn = 0; turn < 10; turn += 1) expect(await get(first)).toBe(200);
  await expect.poll(sharedLevel).toBeCloseTo(10, 0);
  // The second learns with its first settlement what the first has granted.
  expect(await get(second)).toBe(200);
  await expect.poll(sharedLevel).toBeCloseTo(11, 0);
  const statuses = [];
  for (let turn = 0; turn < 15; turn += 1) statuses.push(await get(second));
  expect(statuses.filter((status) => status === 200)).toHaveLength(9);
  await expect.poll(sharedLevel).toBeCloseTo(20, 0);
  // The first did not know it: it grants what it believes to be left, is charged with it, and refuses then.
  let granted = 0;
  for (let turn = 0; turn < 30; turn += 1) if ((await get(first)) === 200) granted += 1;
  expect(granted).toBeLessThanOrEqual(points);
  await expect.poll(sharedLevel).toBeCloseTo(20 + granted, 0);
  await expect.poll(() => get(second)).toBe(429);
  expect([...first.log.lines, ...second.log.lines].filter(({ level }) => level !== 'info')).toEqual([]);
});

test('what was granted too much is paid off before anything more is granted', async () => {
  // 50 a second; the table says that others have used 75, 25 more than the capacity.
  const one = await startProcess({ points: 50, durationSeconds: 1 });
  await using _ = one.server;
  expect(await get(one)).toBe(200);
  await pool.query("update rate_levels set level = 75, at = clock_timestamp() where key like 'app:%'");
  await pool.query(
    "insert into rate_levels values ('app:' || $1, 75, 50, clock_timestamp()) on conflict (key) do nothing",
    ['capp0000000000000000000001'],
  );
  await expect.poll(() => get(one)).toBe(429);
  await expect.poll(() => get(one), { timeout: 20_000 }).toBe(200);
});

test('requests write nothing themselves: hundreds of them are one statement, whose table is not logged', async () => {
  const one = await startProcess({ points: 1_000, ...hourly });
  await using _ = one.server;
  const startedMs = performance.now();
  for (let turn = 0; turn < 200; turn += 1) await get(one);
  const intervals = Math.ceil((performance.now() - startedMs) / 200);
  await expect.poll(sharedLevel).toBeCloseTo(200, -1);
  expect(one.statements.length).toBeLessThanOrEqual(intervals + 1);
  const { rows } = await pool.query("select relpersistence from pg_class where relname = 'rate_levels'");
  expect(rows).toEqual([{ relpersistence: 'u' }]);
});

test('no request waits for the shared table: while it is locked each process counts on its own', async () => {
  const impatient = new Pool({ connectionString: url, max: 1, lock_timeout: 100 });
  const one = await startProcess({ points: 30, ...hourly }, impatient);
  const holder = await pool.connect();
  {
    await using _ = one.server;
    await holder.query('begin; lock table rate_levels in access exclusive mode');
    const statuses = [];
    for (let turn = 0; turn < 32; turn += 1) statuses.push(await get(one));
    expect(statuses).toEqual([...Array(30).fill(200), 429, 429]);
    await expect.poll(() => one.log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
    await holder.query('rollback');
    // It keeps what it has counted meanwhile.
    expect(await get(one)).toBe(429);
  }
  holder.release();
  await impatient.end();
});

test('while the database is unavailable each process counts on its own', async () => {
  const away = new Pool({ connectionString: 'postgresql://unknown@127.0.0.1:1/none', max: 1 });
  {
    const one = await startProcess({ points: 1, ...hourly }, away);
    await using _ = one.server;
    expect([await get(one), await get(one)]).toEqual([200, 429]);
  }
  await away.end();
});

test('levels that have fallen to nothing are dropped from the table', async () => {
  let nowMs = 0;
  const one = await startProcess({ points: 10, durationSeconds: 1, now: () => nowMs });
  await using _ = one.server;
  await pool.query(
    "insert into rate_levels select 'app:' || n, 1, 10, clock_timestamp() - interval '1 minute' from generate_series(1, 50) n",
  );
  nowMs += 60_000;
  expect(await get(one)).toBe(200);
  await expect
    .poll(async () => (await pool.query('select key from rate_levels')).rows.length)
    .toBeLessThanOrEqual(1);
});
