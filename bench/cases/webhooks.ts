import type { BenchCase } from '../bench-case.ts';
import type { DeliveryMeasured } from '../in-process/webhook-delivery.ts';
import { runInProcess } from '../measure/in-process.ts';
import { startPostgres } from '../measure/postgres.ts';
import { median } from '../measure/rounds.ts';
import { atLeast, atMost, type Goal } from '../report.ts';

const names: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

/** What recording an event adds to creating a wallet, and how fast events are delivered. */
export const webhooks: BenchCase = {
  about: 'recording an event beside making a wallet, delivery to a fast local endpoint; SQLite, PostgreSQL',
  needsPeers: false,
  async run(bench) {
    const args = ['--rounds', String(bench.rounds)];
    const measure = (more: readonly string[]) =>
      runInProcess<DeliveryMeasured>('webhook-delivery.ts', [...args, ...more], bench.report);
    const onSqlite = await measure([]);
    bench.report('starting PostgreSQL');
    const server = await startPostgres();
    try {
      const all = [onSqlite, await measure(['--url', await server.create('webhooks')])];
      return {
        tables: [
          {
            title: 'Webhooks, one process',
            columns: [
              'on',
              'CPU µs a wallet',
              'and its event',
              'ratio',
              'events/s',
              'least',
              'CPU µs an event',
            ],
            rows: all.map((found) => [
              names[found.database] ?? found.database,
              median(found.wallet),
              median(found.walletAndEvent),
              ratioOf(found),
              Math.max(...found.delivered),
              Math.min(...found.delivered),
              Math.min(...found.delivery),
            ]),
          },
        ],
        goals: all.flatMap(goalsOf),
      };
    } finally {
      await server.stop();
    }
  },
};

/** The median of the ratios of consecutive turns, which ran under the same load of the machine. */
function ratioOf({ wallet, walletAndEvent }: DeliveryMeasured): number {
  return median(wallet.map((alone, turn) => walletAndEvent[turn]! / alone));
}

function goalsOf(found: DeliveryMeasured): Goal[] {
  const on = names[found.database];
  return [
    atMost({
      id: '-',
      what: `${on}: a wallet and its event to a wallet`,
      measured: ratioOf(found),
      limit: 1.1,
    }),
    atLeast({
      id: '-',
      what: `${on}: events delivered a second`,
      measured: Math.max(...found.delivered),
      limit: 1000,
      unit: '/s',
    }),
  ];
}
