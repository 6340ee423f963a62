import { join } from 'node:path';
import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import { type Contestant, leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, noiseTable, roundsTable } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';

const names = { off: '--record off', least: 'the least', on: '--record on' };
const requests = ['getWallet', 'personal_sign'] as const;

/**
 * What it costs to keep the latest requests, and what it costs to copy the least of them: URL, headers and response, of which
 * nothing can be found again.
 */
export const recorder: BenchCase = {
  about:
    'GET wallet, personal_sign: a sandbox that records its requests, one that does not, one that only copies',
  needsPeers: false,
  async run(bench) {
    const contestants: Contestant[] = [];
    try {
      for (const [name, options] of [
        [names.off, { flags: ['--record', 'off'] }],
        [names.least, { flags: ['--record', 'off'], before: join('bench', 'servers', 'bare-recorder.ts') }],
        [names.on, { flags: ['--record', 'on'] }],
      ] as const) {
        bench.report(`starting ${name}`);
        const server = await launchCustos({ command: 'sandbox', ...options });
        contestants.push({ name, server, requests: {} });
        const { getWallet, personal_sign } = await walletRequests(server);
        contestants[contestants.length - 1] = { name, server, requests: { getWallet, personal_sign } };
        await requireContract(server, 'getWallet', getWallet[0]!);
      }
      const measured = await measureRounds(contestants, { ...bench, connections: 16 });
      const cpu = (name: string): number => leastCpu(pick(measured, name, 'getWallet'));
      const memory = contestants.map(({ name, server }) => [name, residentMegabytesOf(server.pid)]);
      return {
        tables: [
          ...requests.map((request) => roundsTable(`${request}, in memory`, measured, request)),
          { title: 'Resident memory after the load, MB', columns: ['sandbox', 'MB'], rows: memory },
          noiseTable(measured),
        ],
        goals: [
          atMost({
            id: '-',
            what: 'getWallet: recorded to not recorded',
            measured: cpu(names.on) / cpu(names.off),
            limit: 1.05,
          }),
          atMost({
            id: '-',
            what: 'getWallet: recorded to the least that can be recorded',
            measured: cpu(names.on) / cpu(names.least),
            limit: 1.05,
          }),
        ],
      };
    } finally {
      await Promise.all(contestants.map(({ server }) => server.stop()));
    }
  },
};
