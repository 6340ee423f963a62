import type { BenchCase } from '../bench-case.ts';
import { type Contestant, leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, noiseTable, roundsTable } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';

const servers = {
  'no line per request': { isQuiet: true, flags: [] },
  'JSON lines': { isQuiet: false, flags: ['--json'] },
  'readable lines': { isQuiet: false, flags: [] },
} as const;

/** What it costs to log one line per request. */
export const requestLog: BenchCase = {
  about: 'GET wallet: a sandbox that logs each request, and one that does not (G12)',
  needsPeers: false,
  async run(bench) {
    const contestants: Contestant[] = [];
    try {
      // Two processes of each, because two of one program differ by up to a tenth.
      for (const [name, options] of [...Object.entries(servers), ...Object.entries(servers)]) {
        bench.report(`starting: ${name}`);
        const server = await launchCustos({ command: 'sandbox', ...options });
        contestants.push({ name, server, requests: {} });
        const { getWallet } = await walletRequests(server);
        contestants[contestants.length - 1] = { name, server, requests: { getWallet } };
      }
      const measured = await measureRounds(contestants, { ...bench, connections: 16 });
      const cpu = (name: keyof typeof servers): number => leastCpu(pick(measured, name, 'getWallet'));
      return {
        tables: [roundsTable('getWallet, in memory', measured, 'getWallet'), noiseTable(measured)],
        goals: (['JSON lines', 'readable lines'] as const).map((name) =>
          atMost({
            id: 'G12',
            what: `getWallet: ${name} to none`,
            measured: cpu(name) / cpu('no line per request'),
            limit: 1.15,
          }),
        ),
      };
    } finally {
      await Promise.all(contestants.map(({ server }) => server.stop()));
    }
  },
};
