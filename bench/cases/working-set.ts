import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import { leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, busyOthersOf, noiseTable, roundsTable } from '../report.ts';
import { personalSignRequest } from '../requests.ts';
import { createWallets } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import { temporaryFolder } from '../servers/launch.ts';

const name = 'custos sandbox --data';
const WALLETS = 2_000;
const [one, many] = ['one wallet', '2,000 wallets'] as const;

/** Does signing depend on what earlier requests to the same wallet have left in memory? */
export const workingSet: BenchCase = {
  about: 'personal_sign across 2,000 wallets, to one wallet',
  needsPeers: false,
  async run(bench) {
    bench.report(`starting ${name}`);
    const server = await launchCustos({ command: 'sandbox', flags: ['--data', temporaryFolder()] });
    try {
      bench.report('creating wallets');
      const ids = await createWallets(server, WALLETS, 'ethereum');
      const sign = (id: string): LoadRequest => personalSignRequest(server, id, 'Approve invoice 2000');
      const requests = { [one]: ids.slice(0, 1).map(sign), [many]: ids.map(sign) };
      await requireContract(server, 'walletRpc', sign(ids[0] as string));
      const measured = await measureRounds([{ name, server, requests }], { ...bench, connections: 16 });
      const cpu = (request: string): number => leastCpu(pick(measured, name, request));
      return {
        tables: [
          ...[one, many].map((request) => roundsTable(`personal_sign, ${request}`, measured, request)),
          {
            title: 'Resident memory after the load',
            columns: ['', 'MB'],
            rows: [[name, residentMegabytesOf(server.pid)]],
          },
          noiseTable(measured),
        ],
        goals: [
          atMost({
            id: '-',
            what: 'personal_sign across 2,000 wallets to one, CPU',
            measured: cpu(many) / cpu(one),
            limit: 1.2,
          }),
        ],
        busyOthers: busyOthersOf(measured),
      };
    } finally {
      await server.stop();
    }
  },
};
