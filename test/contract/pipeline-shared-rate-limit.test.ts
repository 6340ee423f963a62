import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { createRateLimiter } from '../../src/http/rate-limit.ts';
import { freshPostgres } from '../support/databases.ts';
import { startToyServer } from '../unit/http/toy-server.ts';

test('several processes on one PostgreSQL count together', async () => {
  const pool = new Pool({ connectionString: await freshPostgres(), max: 2 });
  const process = () =>
    startToyServer({
      rateLimiter: createRateLimiter({ points: 3, durationSeconds: 60, postgres: { pool } }),
    });
  {
    await using first = await process();
    await using second = await process();
    // The table is created when the first limiter starts; until then each process counts on its own.
    await expect
      .poll(async () => (await pool.query("select to_regclass('rate_limits') as made")).rows)
      .toEqual([{ made: 'rate_limits' }]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const answers = [];
    for (let turn = 0; turn < 4; turn += 1) {
      answers.push(await (turn % 2 === 0 ? first : second).fetch('GET', '/v1/toys'));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual(['2', '1', '0', '0']);
  }
  await pool.end();
});

test('while the database is unavailable each process counts on its own', async () => {
  const pool = new Pool({ connectionString: 'postgresql://unknown@127.0.0.1:1/none', max: 1 });
  {
    await using server = await startToyServer({
      rateLimiter: createRateLimiter({ points: 1, durationSeconds: 60, postgres: { pool } }),
    });
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(200);
    expect((await server.fetch('GET', '/v1/toys')).status).toBe(429);
  }
  await pool.end();
});
