import type { BenchCase } from '../bench-case.ts';
import { type Contestant, leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, noiseTable, roundsTable } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';

const names = { off: '--audit off', on: '--audit on' };
const LIMIT = 1.1;

/** What the audit log adds to creating a wallet. */
export const audit: BenchCase = {
  about: 'creating a wallet with and without the audit log, over HTTP',
  needsPeers: false,
  async run(bench) {
    const measured = await measureSandboxes(bench);
    const cpu = (name: string): number => leastCpu(pick(measured, name, 'createWallet'));
    return {
      tables: [roundsTable('createWallet, in memory, HTTP', measured, 'createWallet'), noiseTable(measured)],
      goals: [
        atMost({
          ...{ id: '-', what: 'createWallet over HTTP, SQLite: audited to not' },
          ...{ measured: cpu(names.on) / cpu(names.off), limit: LIMIT },
        }),
      ],
    };
  },
};

async function measureSandboxes(bench: Parameters<BenchCase['run']>[0]) {
  const contestants: Contestant[] = [];
  try {
    for (const [name, flag] of [
      [names.off, 'off'],
      [names.on, 'on'],
    ] as const) {
      bench.report(`starting ${name}`);
      const server = await launchCustos({ command: 'sandbox', flags: ['--audit', flag, '--record', 'off'] });
      contestants.push({ name, server, requests: {} });
      const { createWallet } = await walletRequests(server);
      contestants[contestants.length - 1] = { name, server, requests: { createWallet } };
    }
    return await measureRounds(contestants, { ...bench, connections: 16 });
  } finally {
    await Promise.all(contestants.map(({ server }) => server.stop()));
  }
}
