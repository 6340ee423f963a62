import type { BenchCase } from '../bench-case.ts';
import { cpuOf, measureServers } from '../measure/rounds.ts';
import { atMost, roundsResult } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import type { RunningServer } from '../servers/launch.ts';

/** What the audit log adds to creating a wallet. */
export const audit: BenchCase = {
  about: 'creating a wallet with and without the audit log, over HTTP',
  needsPeers: false,
  async run(bench) {
    const entries = ['off', 'on'].map((flag) => ({
      name: `--audit ${flag}`,
      start: () => launchCustos({ command: 'sandbox', flags: ['--audit', flag, '--record', 'off'] }),
      requestsTo: async (server: RunningServer) => ({
        createWallet: (await walletRequests(server)).createWallet,
      }),
    }));
    const { measured } = await measureServers(bench, entries);
    const cpu = (flag: string): number => cpuOf(measured, `--audit ${flag}`, 'createWallet');
    return roundsResult(measured, (request) => `${request}, in memory, HTTP`, [
      atMost('-', 'createWallet over HTTP, SQLite: audited to not', cpu('on') / cpu('off'), 1.1),
    ]);
  },
};
