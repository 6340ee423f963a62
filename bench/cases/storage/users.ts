import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchCase } from '../../bench-case.ts';
import type { StorageMeasured } from '../../in-process/storage-rounds.ts';
import { runInProcess } from '../../measure/in-process.ts';
import { startPostgres } from '../../measure/postgres.ts';
import { atMost, type Goal } from '../../report.ts';
import { leastCpuOf, mostPerSecondOf, storageTable } from './storage-goals.ts';

const SQLITE_USERS = 100_000;
const POSTGRES_USERS = 1_000_000;

/** Whether operations on users slow down with their number. */
export const users: BenchCase = {
  about:
    'users at 100,000 (SQLite) and 1,000,000 (PostgreSQL) against 1,000: get, look-ups, search, pages, create',
  needsPeers: false,
  async run(bench) {
    const onSqlite = await measureSqlite(bench.rounds, bench.report);
    const onPostgres = await measurePostgres(bench.rounds, bench.report);
    return {
      tables: [
        storageTable(`SQLite, large is ${SQLITE_USERS} users`, onSqlite),
        storageTable(`PostgreSQL, large is ${POSTGRES_USERS} users`, onPostgres),
      ],
      goals: [...goalsOf('SQLite', onSqlite), ...goalsOf('PostgreSQL', onPostgres)],
    };
  },
};

async function measureSqlite(rounds: number, report: (progress: string) => void): Promise<StorageMeasured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'custos-bench-users-'));
  try {
    const files = ['--small', join(folder, 'small.sqlite'), '--large', join(folder, 'large.sqlite')];
    const sizes = ['--rounds', String(rounds), '--users', String(SQLITE_USERS)];
    return await runInProcess('users-growth.ts', ['--kind', 'sqlite', ...sizes, ...files], report);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measurePostgres(
  rounds: number,
  report: (progress: string) => void,
): Promise<StorageMeasured[]> {
  report('starting PostgreSQL');
  const server = await startPostgres();
  try {
    const urls = ['--small', await server.create('small'), '--large', await server.create('large')];
    const sizes = ['--rounds', String(rounds), '--users', String(POSTGRES_USERS)];
    return await runInProcess('users-growth.ts', ['--kind', 'postgres', ...sizes, ...urls], report);
  } finally {
    await server.stop();
  }
}

function goalsOf(database: string, measured: readonly StorageMeasured[]): Goal[] {
  const operations = [...new Set(measured.map(({ operation }) => operation))];
  return operations.map((operation) =>
    atMost({
      id: 'users',
      what: `${database}: ${operation}, many users to 1,000`,
      // SQLite runs in our process; PostgreSQL in others, so only the elapsed time is available.
      measured:
        database === 'SQLite'
          ? leastCpuOf(measured, 'large', operation) / leastCpuOf(measured, 'small', operation)
          : mostPerSecondOf(measured, 'small', operation) / mostPerSecondOf(measured, 'large', operation),
      limit: 2,
    }),
  );
}
