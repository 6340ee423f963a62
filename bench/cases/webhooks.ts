import type { BenchCase } from '../bench-case.ts';
import type { DeliveryMeasured } from '../in-process/webhook-delivery.ts';
import { runInProcess } from '../measure/in-process.ts';
import { withPostgres } from '../measure/postgres.ts';
import { median } from '../measure/rounds.ts';
import { atLeast, atMost } from '../report.ts';

const names: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

/** What recording an event adds to creating a wallet, and how fast events are delivered. */
export const webhooks: BenchCase = {
  about: 'recording an event beside making a wallet, delivery to a fast local endpoint; SQLite, PostgreSQL',
  needsPeers: false,
  async run(bench) {
    const measure = (...more: readonly string[]) => {
      const args = ['--rounds', String(bench.rounds), ...more];
      return runInProcess<DeliveryMeasured>('webhook-delivery.ts', args, bench.report);
    };
    const onSqlite = await measure();
    const onPostgres = await withPostgres(bench.report, async (postgres) =>
      measure('--url', await postgres.create('webhooks')),
    );
    const all = [onSqlite, onPostgres];
    const table = {
      title: 'Webhooks, one process',
      columns: ['on', 'CPU µs a wallet', 'and its event', 'ratio', 'events/s', 'least', 'CPU µs an event'],
      rows: all.map((found) => [
        names[found.database] ?? found.database,
        median(found.wallet),
        median(found.walletAndEvent),
        ratioOf(found),
        Math.max(...found.delivered),
        Math.min(...found.delivered),
        Math.min(...found.delivery),
      ]),
    };
    const goals = all.flatMap((found) => {
      const on = names[found.database];
      return [
        atMost('-', `${on}: a wallet and its event to a wallet`, ratioOf(found), 1.1),
        atLeast('-', `${on}: events delivered a second`, Math.max(...found.delivered), 1000, '/s'),
      ];
    });
    return { tables: [table], goals };
  },
};

/** The median of the ratios of consecutive turns, which ran under the same load of the machine. */
function ratioOf({ wallet, walletAndEvent }: DeliveryMeasured): number {
  return median(wallet.map((alone, turn) => walletAndEvent[turn]! / alone));
}
