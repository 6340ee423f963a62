import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, BenchCase } from '../bench-case.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import { median } from '../measure/rounds.ts';
import { atLeast, atMost, type Table } from '../report.ts';
import { getRequest } from '../requests.ts';
import { credentials } from '../servers/credentials.ts';
import { custosArguments, programs } from '../servers/custos.ts';
import { freePort, prismArguments, stop, temporaryFolder } from '../servers/launch.ts';

const GIVE_UP_MS = 60_000;

interface Start {
  readonly name: string;
  readonly args: (port: number) => string[];
}

interface Started {
  readonly milliseconds: number[];
  readonly megabytes: number[];
}

const own =
  (file: string, ...flags: string[]) =>
  (port: number) => [join('bench', 'servers', file), ...['--port', String(port)], ...flags];
const kept = temporaryFolder();
const names = { static: 'node:http, fixed answer', sandbox: 'custos sandbox', prism: 'prism mock' };

const starts: readonly Start[] = [
  { name: names.static, args: own('static.ts') },
  { name: 'bare', args: own('bare.ts') },
  { name: 'bare with SQLite', args: own('bare.ts', '--work', 'stored') },
  { name: 'fastify', args: own('fastify.ts') },
  { name: names.sandbox, args: (port) => [programs.bundle, ...custosArguments('sandbox', port), '--quiet'] },
  {
    name: 'custos sandbox --data, not its first start',
    args: (port) => [programs.bundle, ...custosArguments('sandbox', port), '--quiet', '--data', kept],
  },
  {
    name: 'custos sandbox from sources',
    args: (port) => [programs.sources, ...custosArguments('sandbox', port), '--quiet'],
  },
  { name: 'custos mock', args: (port) => [programs.bundle, ...custosArguments('mock', port), '--quiet'] },
  { name: names.prism, args: prismArguments },
];

/** From the start of a process to its first 200. */
export const startUp: BenchCase = {
  about: 'from the start of the process to its first 200, and what is resident then (G6)',
  needsPeers: true,
  async run(bench) {
    const found = new Map<string, Started>(
      starts.map(({ name }) => [name, { milliseconds: [], megabytes: [] }]),
    );
    for (const start of starts) {
      bench.tell(`warming up ${start.name}`);
      // Fills the compile cache, the certificate's folder and the system's file cache.
      await startOnce(start);
    }
    for (let round = 1; round <= bench.starts; round += 1) await startAll(round, found, bench);
    return report(found);
  },
};

async function startAll(round: number, found: Map<string, Started>, bench: Bench): Promise<void> {
  for (const start of starts) {
    bench.tell(`start ${round} of ${bench.starts}: ${start.name}`);
    const { milliseconds, megabytes } = await startOnce(start);
    found.get(start.name)?.milliseconds.push(milliseconds);
    found.get(start.name)?.megabytes.push(megabytes);
  }
}

async function startOnce({ name, args }: Start): Promise<{ milliseconds: number; megabytes: number }> {
  const port = await freePort();
  const startedMs = performance.now();
  const child = spawn(process.execPath, args(port), {
    cwd: join(import.meta.dirname, '..', '..'),
    stdio: 'ignore',
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  try {
    for (;;) {
      if (await answers200(port)) {
        return {
          milliseconds: performance.now() - startedMs,
          megabytes: residentMegabytesOf(child.pid as number),
        };
      }
      if (child.exitCode !== null) throw new Error(`${name} ended with code ${child.exitCode}`);
      if (performance.now() - startedMs > GIVE_UP_MS) throw new Error(`${name} did not answer in time`);
      await wait(2);
    }
  } finally {
    await stop(child);
    process.off('exit', kill);
  }
}

function answers200(port: number): Promise<boolean> {
  const address = { origin: `http://127.0.0.1:${port}`, ...credentials };
  const { path, headers } = getRequest(address, '/v1/wallets');
  return new Promise((resolve) => {
    const request = get(`${address.origin}${path}`, { headers, agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200));
    });
    request.on('error', () => resolve(false));
  });
}

function report(found: ReadonlyMap<string, Started>) {
  const of = (name: string): Started => found.get(name) as Started;
  const least = (name: string): number => Math.min(...of(name).milliseconds);
  const middle = (name: string): number => median(of(name).milliseconds);
  const table: Table = {
    title: 'Start to first 200 of GET /v1/wallets over plain HTTP',
    columns: ['server', 'min ms', 'median ms', 'ratio of minima', 'ratio of medians', 'resident MB'],
    rows: [...found.keys()].map((name) => [
      name,
      least(name),
      middle(name),
      least(name) / least(names.static),
      middle(name) / middle(names.static),
      median(of(name).megabytes),
    ]),
  };
  const goals = [
    atMost({
      id: 'G6',
      what: 'start-up: sandbox to node:http, minima',
      measured: least(names.sandbox) / least(names.static),
      limit: 2,
    }),
    atLeast({
      id: 'G6',
      what: 'start-up: Prism to sandbox, minima',
      measured: least(names.prism) / least(names.sandbox),
      limit: 15,
    }),
    atMost({
      id: 'G6',
      what: 'start-up: sandbox resident after its first answer',
      measured: median(of(names.sandbox).megabytes),
      limit: 150,
      unit: 'MB',
    }),
    atMost({
      id: '-',
      what: 'start-up: sandbox ready, median',
      measured: middle(names.sandbox),
      limit: 1000,
      unit: 'ms',
    }),
  ];
  return { tables: [table], goals };
}
