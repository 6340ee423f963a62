import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { createRateLimiter } from '../../src/http/rate-limit.ts';
import { freshPostgres } from '../support/postgres/borrow-database.ts';
import { keptLog, startToyServer } from '../unit/http/toy-server.ts';

test('several processes on one PostgreSQL count together', async () => {
  const pool = new Pool({ connectionString: await freshPostgres(), max: 2 });
  // Enough for all that is sent until both count in the database, however busy the machine is.
  const points = 100;
  const log = keptLog();
  const process = () =>
    startToyServer({
      rateLimiter: createRateLimiter({ points, durationSeconds: 60, postgres: { pool, log } }),
    });
  const counted = async (): Promise<number> =>
    Number((await pool.query('select coalesce(sum(points), 0) as count from rate_limits')).rows[0].count);
  {
    await using first = await process();
    await using second = await process();
    // The table is created when the first limiter starts; until then each process counts on its own.
    await expect
      .poll(async () => (await pool.query("select to_regclass('rate_limits') as made")).rows, {
        timeout: 20_000,
      })
      .toEqual([{ made: 'rate_limits' }]);
    for (const server of [first, second]) {
      await expect
        .poll(
          async () => {
            const before = await counted();
            await server.fetch('GET', '/v1/toys');
            return (await counted()) - before;
          },
          { timeout: 20_000, interval: 500 },
        )
        .toBe(1);
    }
    const left = points - (await counted());
    const answers = [];
    for (let turn = 0; turn <= left; turn += 1) {
      answers.push(await (turn % 2 === 0 ? first : second).fetch('GET', '/v1/toys'));
    }
    expect(answers.map(({ status }) => status)).toEqual([...Array(left).fill(200), 429]);
    expect(answers.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))).toEqual([
      ...Array.from({ length: left }, (_, turn) => left - turn - 1),
      0,
    ]);
    expect(left).toBeGreaterThan(4);
    // One of two that create the table at the same moment may fail; that is not worth a warning.
    expect(log.lines).toEqual([]);
  }
  await pool.end();
});

test('a process whose table could not be created tries again, and warns when that fails too', async () => {
  const pool = new Pool({ connectionString: await freshPostgres(), max: 2 });
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  const log = keptLog();
  // Twice for each of the three limiters.
  let refusals = 6;
  const failing = new Proxy(pool, {
    get: (target, name) =>
      name !== 'query'
        ? Reflect.get(target, name)
        : (...args: unknown[]) => {
            if (refusals === 0) return query(...args);
            refusals -= 1;
            return Promise.reject(new Error('tuple concurrently updated'));
          },
  });
  {
    const settings = { points: 1000, durationSeconds: 60, postgres: { pool: failing, log } };
    await using server = await startToyServer({ rateLimiter: createRateLimiter(settings) });
    await expect
      .poll(
        async () => {
          await server.fetch('GET', '/v1/toys');
          const made = await pool.query("select to_regclass('rate_limits') as made");
          if (made.rows[0].made === null) return 0;
          return (await pool.query('select * from rate_limits')).rows.length;
        },
        { timeout: 20_000, interval: 250 },
      )
      .toBe(1);
    const warnings = ['app', 'user', 'users'].map((limit) => ({
      level: 'warn',
      fields: { err: expect.objectContaining({ message: 'tuple concurrently updated' }), limit },
      message: 'requests are counted by each process on its own until the table `rate_limits` can be created',
    }));
    expect(log.lines).toEqual(warnings);
  }
  await pool.end();
});

test('while the database is unavailable each process counts on its own', async () => {
  const pool = new Pool({ connectionString: 'postgresql://unknown@127.0.0.1:1/none', max: 1 });
  {
    await using server = await startToyServer({
      rateLimiter: createRateLimiter({ points: 1, durationSeconds: 60, postgres: { pool, log: keptLog() } }),
    });
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(429);
  }
  await pool.end();
});
