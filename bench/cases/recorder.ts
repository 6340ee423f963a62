import { join } from 'node:path';
import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import { cpuOf, measureServers } from '../measure/rounds.ts';
import { atMost, roundsResult } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { type CustosOptions, launchCustos } from '../servers/custos.ts';
import type { RunningServer } from '../servers/launch.ts';

const names = { off: '--record off', least: 'the least', on: '--record on' };
const servers: readonly [name: string, options: Omit<CustosOptions, 'command'>][] = [
  [names.off, { flags: ['--record', 'off'] }],
  [names.least, { flags: ['--record', 'off'], before: join('bench', 'servers', 'bare-recorder.ts') }],
  [names.on, { flags: ['--record', 'on'] }],
];

async function requestsTo(server: RunningServer) {
  const { getWallet, personal_sign } = await walletRequests(server);
  await requireContract(server, 'getWallet', getWallet[0]!);
  return { getWallet, personal_sign };
}

/**
 * What it costs to keep the latest requests, and what it costs to copy the least of them: URL, headers and response, of which
 * nothing can be found again.
 */
export const recorder: BenchCase = {
  about:
    'GET wallet, personal_sign: a sandbox that records its requests, one that does not, one that only copies',
  needsPeers: false,
  async run(bench) {
    const entries = servers.map(([name, options]) => {
      return { name, start: () => launchCustos({ command: 'sandbox', ...options }), requestsTo };
    });
    const { measured, memory } = await measureServers(bench, entries);
    const rows = memory.map(([name, , loaded]) => [name, loaded]);
    const resident = { title: 'Resident memory after the load, MB', columns: ['sandbox', 'MB'], rows };
    const cpu = (name: string): number => cpuOf(measured, name, 'getWallet');
    const goals = [
      atMost('-', 'getWallet: recorded to not recorded', cpu(names.on) / cpu(names.off), 1.05),
      atMost(
        '-',
        'getWallet: recorded to the least that can be recorded',
        cpu(names.on) / cpu(names.least),
        1.05,
      ),
    ];
    return roundsResult(measured, (request) => `${request}, in memory`, goals, [resident]);
  },
};
