import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, BenchCase } from '../bench-case.ts';
import { ask, requireContract } from '../measure/ask.ts';
import { cpuWithChildrenOf } from '../measure/process-usage.ts';
import { atLeast, type Table } from '../report.ts';
import { getRequest, postRequest } from '../requests.ts';
import { launchCustos } from '../servers/custos.ts';
import { launchOwn, type RunningServer, temporaryFolder } from '../servers/launch.ts';

const BURST = 500;
/** The default of a sandbox. */
const PREPARED = 512;
const CONNECTIONS = 16;
const names = {
  bare: 'bare, HTTP, keys prepared',
  plain: 'custos sandbox --data, HTTP',
  https: 'custos sandbox --data, HTTPS',
  memory: 'custos sandbox in memory, HTTPS',
  unprepared: 'the same, --prepared-keys 0',
};

interface Subject {
  readonly name: string;
  readonly server: RunningServer;
  readonly perSecond: number[];
  readonly cpuMicroseconds: number[];
  /** GET wallet on the same connections in the same round: how fast the machine was then. */
  readonly readsPerSecond: number[];
}

/** 500 wallets at once, after the server had time to prepare their keys. */
export const burst: BenchCase = {
  about: 'a burst of 500 created wallets, with keys prepared in idle time',
  needsPeers: false,
  async run(bench) {
    const subjects: Subject[] = [];
    const add = async (name: string, starting: Promise<RunningServer>): Promise<void> => {
      bench.report(`starting ${name}`);
      subjects.push({ name, server: await starting, perSecond: [], cpuMicroseconds: [], readsPerSecond: [] });
    };
    const kept = (): string[] => ['--data', temporaryFolder()];
    try {
      await add(names.bare, launchOwn('bare.ts', ['--work', 'stored', '--prepared-keys', String(PREPARED)]));
      const prepared = { command: 'sandbox', preparedKeys: PREPARED } as const;
      await add(names.plain, launchCustos({ ...prepared, flags: kept() }));
      await add(names.https, launchCustos({ ...prepared, https: true, flags: kept() }));
      await add(names.memory, launchCustos({ ...prepared, https: true }));
      await add(names.unprepared, launchCustos({ command: 'sandbox', https: true }));
      for (let round = 0; round <= bench.rounds; round += 1) {
        for (const subject of subjects) {
          bench.report(
            round === 0 ? `warming up ${subject.name}` : `round ${round} of ${bench.rounds}: ${subject.name}`,
          );
          await sendBurst(subject, bench, round === 0);
        }
      }
      return report(subjects);
    } finally {
      await Promise.all(subjects.map(({ server }) => server.stop()));
    }
  },
};

async function sendBurst(subject: Subject, { load }: Bench, isWarmUp: boolean): Promise<void> {
  const { server } = subject;
  const create = postRequest(server, '/v1/wallets', { chain_type: 'ethereum' });
  await requireContract(server, 'createWallet', create);
  const { id } = await ask<{ id: string }>(server, create);
  await untilIdle(server.pid);
  const before = cpuWithChildrenOf(server.pid);
  const greeting = getRequest(server, `/v1/wallets/${id}`);
  const order = {
    origins: [server.origin],
    caPem: server.origin.startsWith('https:') ? server.caPem : undefined,
    ...{ connections: CONNECTIONS, greeting },
  };
  const { completed, elapsedMs } = await load.run({
    ...{ ...order, seconds: 30, count: BURST, requests: [create] },
  });
  const after = cpuWithChildrenOf(server.pid);
  if (completed !== BURST) throw new Error(`${subject.name}: ${completed} of ${BURST} wallets in 30 s`);
  if (isWarmUp) return;
  subject.perSecond.push((completed * 1000) / elapsedMs);
  subject.cpuMicroseconds.push((after - before) / completed);
  const reads = await load.run({ ...order, seconds: 0.5, requests: [greeting] });
  subject.readsPerSecond.push((reads.completed * 1000) / reads.elapsedMs);
}

const WINDOW_MS = 800;
const QUIET_WINDOWS = 2;
const LONGEST_WAIT_MS = 60_000;

/** Waits until a server uses no more CPU time, so until it has prepared its keys. */
async function untilIdle(pid: number): Promise<void> {
  let quiet = 0;
  for (let waitedMs = 0; quiet < QUIET_WINDOWS; waitedMs += WINDOW_MS) {
    if (waitedMs > LONGEST_WAIT_MS) throw new Error('the server does not become idle');
    const before = cpuWithChildrenOf(pid);
    await wait(WINDOW_MS);
    quiet = cpuWithChildrenOf(pid) - before <= 0.015 * WINDOW_MS * 1000 ? quiet + 1 : 0;
  }
}

function report(subjects: readonly Subject[]) {
  const most = (name: string): number => Math.max(...subjects.find((each) => each.name === name)!.perSecond);
  const least = (name: string): number =>
    Math.min(...subjects.find((each) => each.name === name)!.cpuMicroseconds);
  const readsPerSecond = (name: string): number =>
    Math.max(...subjects.find((each) => each.name === name)!.readsPerSecond);
  const table: Table = {
    title: `${BURST} wallets over ${CONNECTIONS} open connections`,
    columns: ['server', 'wallets/s', 'GET/s', 'CPU µs/wallet', 'CPU to bare'],
    rows: subjects.map(({ name }) => [
      ...[name, most(name), readsPerSecond(name), least(name), least(name) / least(names.bare)],
    ]),
  };
  return {
    tables: [table],
    goals: [
      atLeast({
        id: '-',
        what: 'a burst of 500 wallets over HTTPS, in memory',
        measured: most(names.memory),
        limit: 1500,
        unit: '/s',
      }),
      atLeast({
        id: '-',
        what: 'a burst of 500 wallets over HTTPS, each synced',
        measured: most(names.https),
        limit: 1500,
        unit: '/s',
      }),
      atLeast({
        id: '-',
        what: 'a burst in memory, keys prepared to not prepared',
        measured: most(names.memory) / most(names.unprepared),
        limit: 2,
      }),
    ],
  };
}
