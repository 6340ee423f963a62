import type { BenchCase } from '../../bench-case.ts';
import type { StorageMeasured } from '../../in-process/storage-rounds.ts';
import { runInProcess } from '../../measure/in-process.ts';
import { atMost } from '../../report.ts';
import { leastCpuOf, storageTable } from './storage-goals.ts';

const limits = { create: 1.4, get: 2, page: 1.5 };
const what = {
  create: 'wallet, key and event in one transaction',
  get: 'one wallet',
  page: '50 wallets by cursor',
};

/** Our verbs on the ORM's connection against prepared statements, without HTTP. */
export const sqlite: BenchCase = {
  about: 'storage on SQLite without HTTP: our verbs and prepared better-sqlite3 (G7)',
  needsPeers: false,
  async run(bench) {
    const args = ['--rounds', String(bench.rounds)];
    const measured = await runInProcess<StorageMeasured[]>('sqlite-storage.ts', args, bench.report);
    return {
      tables: [storageTable('Storage on SQLite, one at a time', measured)],
      goals: [
        ...(['create', 'get', 'page'] as const).map((operation) =>
          atMost({
            id: 'G7',
            what: `SQLite: ${what[operation]}, ours to raw`,
            measured: leastCpuOf(measured, 'ours', operation) / leastCpuOf(measured, 'raw', operation),
            limit: limits[operation],
          }),
        ),
        atMost({
          id: 'G7',
          what: `SQLite: ${what.create}, ours to raw that is synced in a thread, too`,
          measured:
            leastCpuOf(measured, 'ours', 'create') /
            leastCpuOf(measured, 'raw, synced in a thread', 'create'),
          limit: 1.4,
        }),
      ],
    };
  },
};
