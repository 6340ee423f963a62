import type { BenchCase } from '../../bench-case.ts';
import type { StorageMeasured } from '../../in-process/storage-rounds.ts';
import { runInProcess } from '../../measure/in-process.ts';
import { startPostgres } from '../../measure/postgres.ts';
import { atLeast } from '../../report.ts';
import { mostPerSecondOf, storageTable } from './storage-goals.ts';

const limits = { create: 0.9, get: 0.85, page: 0.85 };
const what = {
  create: 'wallet, key and event in one transaction',
  get: 'one wallet',
  page: '50 wallets by cursor',
};

/** Our verbs on the ORM's connections against named statements, without HTTP, eight at a time. */
export const postgres: BenchCase = {
  about: 'storage on PostgreSQL without HTTP: our verbs and named statements of pg (G8)',
  needsPeers: false,
  async run(bench) {
    bench.report('starting PostgreSQL');
    const server = await startPostgres();
    try {
      const urls = [await server.create('raw'), await server.create('ours')];
      const args = ['--rounds', String(bench.rounds), ...urls.flatMap((url) => ['--url', url])];
      const measured = await runInProcess<StorageMeasured[]>('postgres-storage.ts', args, bench.report);
      return {
        tables: [storageTable('Storage on PostgreSQL, eight at a time', measured)],
        goals: (['create', 'get', 'page'] as const).map((operation) =>
          atLeast({
            id: 'G8',
            what: `PostgreSQL: ${what[operation]} a second, ours to raw`,
            measured:
              mostPerSecondOf(measured, 'ours', operation) / mostPerSecondOf(measured, 'raw', operation),
            limit: limits[operation],
          }),
        ),
      };
    } finally {
      await server.stop();
    }
  },
};
