import type { BenchCase } from '../../bench-case.ts';
import type { StorageMeasured } from '../../in-process/storage-rounds.ts';
import { runInProcess } from '../../measure/in-process.ts';
import { startPostgres } from '../../measure/postgres.ts';
import { atMost, type Goal } from '../../report.ts';
import { leastCpuOf, mostPerSecondOf, storageTable } from './storage-goals.ts';

const SQLITE_ROWS = 100_000;
const POSTGRES_ROWS = 1_000_000;

/** Whether operations slow down as tables grow. */
export const growth: BenchCase = {
  about: 'storage at 100,000 rows (SQLite) and 1,000,000 (PostgreSQL) against 1,000 (G10)',
  needsPeers: false,
  async run(bench) {
    const common = ['--rounds', String(bench.rounds)];
    const onSqlite = await runInProcess<StorageMeasured[]>(
      'sqlite-storage.ts',
      [...common, '--growth', String(SQLITE_ROWS)],
      bench.report,
    );
    bench.report('starting PostgreSQL');
    const server = await startPostgres();
    try {
      const urls = [await server.create('small'), await server.create('large')];
      const args = [...common, '--growth', String(POSTGRES_ROWS), ...urls.flatMap((url) => ['--url', url])];
      const onPostgres = await runInProcess<StorageMeasured[]>('postgres-storage.ts', args, bench.report);
      return {
        tables: [
          storageTable(`SQLite, large is ${SQLITE_ROWS} rows`, onSqlite),
          storageTable(`PostgreSQL, large is ${POSTGRES_ROWS} rows`, onPostgres),
        ],
        goals: [...goalsOf('SQLite', onSqlite, cpuRatio), ...goalsOf('PostgreSQL', onPostgres, timeRatio)],
      };
    } finally {
      await server.stop();
    }
  },
};

/** SQLite runs in our process, so its work is CPU time of this process. */
function cpuRatio(measured: readonly StorageMeasured[], operation: string): number {
  return leastCpuOf(measured, 'large', operation) / leastCpuOf(measured, 'small', operation);
}

/** PostgreSQL runs in other processes, so only the elapsed time is available. */
function timeRatio(measured: readonly StorageMeasured[], operation: string): number {
  return mostPerSecondOf(measured, 'small', operation) / mostPerSecondOf(measured, 'large', operation);
}

function goalsOf(database: string, measured: readonly StorageMeasured[], ratio: typeof cpuRatio): Goal[] {
  return ['create', 'get', 'page'].map((operation) =>
    atMost({
      id: 'G10',
      what: `${database}: ${operation}, many rows to 1,000`,
      measured: ratio(measured, operation),
      limit: 1.3,
    }),
  );
}
