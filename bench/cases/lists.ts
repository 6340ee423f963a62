import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, busyOthersOf, noiseTable, roundsTable } from '../report.ts';
import { getRequest } from '../requests.ts';
import { createWallets } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import { temporaryFolder } from '../servers/launch.ts';

const name = 'custos sandbox --data';
const RARE = 150;
const COMMON = 3_000;

/** Pages of 100 wallets: all of them, those of most, and those of few. */
export const lists: BenchCase = {
  about: 'a list of 100 of 3,150 wallets: without a filter, and with filters that match most and few',
  needsPeers: false,
  async run(bench) {
    bench.report(`starting ${name}`);
    const server = await launchCustos({ command: 'sandbox', flags: ['--data', temporaryFolder()] });
    try {
      bench.report('creating wallets');
      // The rare ones are the oldest, so a list of them has to skip all others.
      await createWallets(server, RARE, 'solana');
      await createWallets(server, COMMON, 'ethereum');
      const page = (filter: string): LoadRequest[] => [getRequest(server, `/v1/wallets?limit=100${filter}`)];
      const requests = {
        'no filter': page(''),
        'chain_type of most': page('&chain_type=ethereum'),
        'chain_type of few': page('&chain_type=solana'),
        'with archived ones': page('&chain_type=ethereum&include_archived=true'),
      };
      for (const [request] of Object.values(requests)) {
        await requireContract(server, 'listWallets', request as LoadRequest);
      }
      const measured = await measureRounds([{ name, server, requests }], { ...bench, connections: 16 });
      const cpu = (request: string): number => leastCpu(pick(measured, name, request));
      return {
        tables: [
          ...Object.keys(requests).map((request) =>
            roundsTable(`100 wallets, ${request}`, measured, request),
          ),
          noiseTable(measured),
        ],
        goals: Object.keys(requests)
          .slice(1)
          .map((request) =>
            atMost({
              id: '-',
              what: `a list of 100, ${request}, to one without a filter, CPU`,
              measured: cpu(request) / cpu('no filter'),
              limit: 1.3,
            }),
          ),
        busyOthers: busyOthersOf(measured),
      };
    } finally {
      await server.stop();
    }
  },
};
