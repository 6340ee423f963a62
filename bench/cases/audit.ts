import type { BenchCase } from '../bench-case.ts';
import type { AuditMeasured } from '../in-process/audit-overhead.ts';
import { runInProcess } from '../measure/in-process.ts';
import { startPostgres } from '../measure/postgres.ts';
import { type Contestant, leastCpu, measureRounds, median, pick } from '../measure/rounds.ts';
import { atMost, noiseTable, roundsTable } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';

const names = { off: '--audit off', on: '--audit on' };
const kinds: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };
const LIMIT = 1.1;

/** What the audit log adds to creating a wallet. */
export const audit: BenchCase = {
  about: 'creating a wallet with and without the audit log, SQLite and PostgreSQL',
  needsPeers: false,
  async run(bench) {
    const overHttp = await measureSandboxes(bench);
    const args = ['--rounds', String(bench.rounds)];
    const measure = (more: readonly string[]) =>
      runInProcess<AuditMeasured>('audit-overhead.ts', [...args, ...more], bench.report);
    bench.report('starting PostgreSQL');
    const server = await startPostgres();
    try {
      const inProcess = [await measure([]), await measure(['--url', await server.create('audit')])];
      const cpu = (name: string): number => leastCpu(pick(overHttp, name, 'createWallet'));
      return {
        tables: [
          roundsTable('createWallet, in memory, HTTP', overHttp, 'createWallet'),
          {
            title: 'Creating a wallet, one process, without HTTP',
            columns: ['on', 'CPU µs without', 'audited', 'ratio', 'wallets/s without', 'audited'],
            rows: inProcess.map((found) => [
              kinds[found.database]!,
              leastOf(found.without),
              leastOf(found.audited),
              ratioOf(found),
              Math.max(...found.without.map(({ perSecond }) => perSecond)),
              Math.max(...found.audited.map(({ perSecond }) => perSecond)),
            ]),
          },
          noiseTable(overHttp),
        ],
        goals: [
          atMost({
            ...{ id: '-', what: 'createWallet over HTTP, SQLite: audited to not' },
            ...{ measured: cpu(names.on) / cpu(names.off), limit: LIMIT },
          }),
          ...inProcess.map((found) =>
            atMost({
              ...{ id: '-', what: `creating a wallet, ${kinds[found.database]}: audited to not` },
              ...{ measured: ratioOf(found), limit: LIMIT },
            }),
          ),
        ],
      };
    } finally {
      await server.stop();
    }
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

function leastOf(turns: AuditMeasured['without']): number {
  return Math.min(...turns.map(({ cpuMicroseconds }) => cpuMicroseconds));
}

/** The median of the ratios of consecutive turns, which ran under the same load of the machine. */
function ratioOf({ without, audited }: AuditMeasured): number {
  return median(without.map((alone, turn) => audited[turn]!.cpuMicroseconds / alone.cpuMicroseconds));
}
