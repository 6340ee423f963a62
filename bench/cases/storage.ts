import { join } from 'node:path';
import type { BenchCase } from '../bench-case.ts';
import type { StorageMeasured } from '../in-process/storage-rounds.ts';
import { runInProcess } from '../measure/in-process.ts';
import { withPostgres } from '../measure/postgres.ts';
import { atLeast, atMost, type Table } from '../report.ts';
import { temporaryFolder } from '../servers/launch.ts';

const operations = {
  create: 'wallet, key and event in one transaction',
  get: 'one wallet',
  page: '50 wallets by cursor',
};
type Operation = keyof typeof operations;
const all = Object.keys(operations) as Operation[];

/** Our verbs on the ORM's connection against prepared statements, without HTTP. */
export const sqlite: BenchCase = {
  about: 'storage on SQLite without HTTP: our verbs and prepared better-sqlite3 (G7)',
  needsPeers: false,
  async run({ rounds, report }) {
    const limits = { create: 1.4, get: 2, page: 1.5 };
    const args = ['--rounds', String(rounds)];
    const measured = await runInProcess<StorageMeasured[]>('sqlite-storage.ts', args, report);
    const ratio = (operation: Operation, raw: string): number =>
      leastCpuOf(measured, 'ours', operation) / leastCpuOf(measured, raw, operation);
    const goals = all.map((operation) => {
      const what = `SQLite: ${operations[operation]}, ours to raw`;
      return atMost('G7', what, ratio(operation, 'raw'), limits[operation]);
    });
    const synced = `SQLite: ${operations.create}, ours to raw that is synced in a thread, too`;
    goals.push(atMost('G7', synced, ratio('create', 'raw, synced in a thread'), limits.create));
    return { tables: [storageTable('Storage on SQLite, one at a time', measured)], goals };
  },
};

/** Our verbs on the ORM's connections against named statements, without HTTP, eight at a time. */
export const postgres: BenchCase = {
  about: 'storage on PostgreSQL without HTTP: our verbs and named statements of pg (G8)',
  needsPeers: false,
  async run({ rounds, report }) {
    const limits = { create: 0.9, get: 0.85, page: 0.85 };
    const measured = await withPostgres(report, async ({ create }) => {
      const urls = ['--url', await create('raw'), '--url', await create('ours')];
      return runInProcess<StorageMeasured[]>(
        'postgres-storage.ts',
        ['--rounds', String(rounds), ...urls],
        report,
      );
    });
    const goals = all.map((operation) => {
      const ratio =
        mostPerSecondOf(measured, 'ours', operation) / mostPerSecondOf(measured, 'raw', operation);
      const what = `PostgreSQL: ${operations[operation]} a second, ours to raw`;
      return atLeast('G8', what, ratio, limits[operation]);
    });
    return { tables: [storageTable('Storage on PostgreSQL, eight at a time', measured)], goals };
  },
};

const SQLITE_USERS = 100_000;
const POSTGRES_USERS = 1_000_000;

/** Whether operations on users slow down with their number. */
export const users: BenchCase = {
  about:
    'users at 100,000 (SQLite) and 1,000,000 (PostgreSQL) against 1,000: get, look-ups, search, pages, create',
  needsPeers: false,
  async run({ rounds, report }) {
    const measure = (kind: string, count: number, small: string, large: string) => {
      const sizes = ['--rounds', String(rounds), '--users', String(count)];
      const args = ['--kind', kind, ...sizes, '--small', small, '--large', large];
      return runInProcess<StorageMeasured[]>('users-growth.ts', args, report);
    };
    const file = (name: string): string => join(temporaryFolder(), name);
    const onSqlite = await measure('sqlite', SQLITE_USERS, file('small.sqlite'), file('large.sqlite'));
    const onPostgres = await withPostgres(report, async ({ create }) =>
      measure('postgres', POSTGRES_USERS, await create('small'), await create('large')),
    );
    const named = [...new Set(onSqlite.map(({ operation }) => operation))];
    const what = (database: string, operation: string): string =>
      `${database}: ${operation}, many users to 1,000`;
    return {
      tables: [
        storageTable(`SQLite, large is ${SQLITE_USERS} users`, onSqlite),
        storageTable(`PostgreSQL, large is ${POSTGRES_USERS} users`, onPostgres),
      ],
      goals: [
        ...named.map((operation) => {
          const ratio = leastCpuOf(onSqlite, 'large', operation) / leastCpuOf(onSqlite, 'small', operation);
          return atMost('users', what('SQLite', operation), ratio, 2);
        }),
        // PostgreSQL runs in other processes, so only the elapsed time is available.
        ...named.map((operation) => {
          const [small, large] = [
            mostPerSecondOf(onPostgres, 'small', operation),
            mostPerSecondOf(onPostgres, 'large', operation),
          ];
          return atMost('users', what('PostgreSQL', operation), small / large, 2);
        }),
      ],
    };
  },
};

function leastCpuOf(measured: readonly StorageMeasured[], subject: string, operation: string): number {
  return Math.min(...find(measured, subject, operation).cpuMicroseconds);
}

function mostPerSecondOf(measured: readonly StorageMeasured[], subject: string, operation: string): number {
  return Math.max(...find(measured, subject, operation).perSecond);
}

function find(measured: readonly StorageMeasured[], subject: string, operation: string): StorageMeasured {
  const found = measured.find((entry) => entry.subject === subject && entry.operation === operation);
  if (found === undefined) throw new Error(`${operation} on ${subject} was not measured`);
  return found;
}

function storageTable(title: string, measured: readonly StorageMeasured[]): Table {
  return {
    title,
    columns: ['operation', 'on', 'CPU µs', 'spread', 'per second'],
    rows: measured.map(({ operation, subject, cpuMicroseconds, perSecond }) => [
      operation,
      subject,
      Math.min(...cpuMicroseconds),
      Math.max(...cpuMicroseconds) / Math.min(...cpuMicroseconds),
      Math.max(...perSecond),
    ]),
  };
}
