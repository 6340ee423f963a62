import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchCase } from '../bench-case.ts';
import { cpuMicrosecondsOf, machineBusyMicroseconds, residentMegabytesOf } from '../measure/process-usage.ts';
import { median } from '../measure/rounds.ts';
import { atLeast, atMost, type Table } from '../report.ts';
import { getRequest } from '../requests.ts';
import { credentials } from '../servers/credentials.ts';
import { custosArguments, programs } from '../servers/custos.ts';
import { freePort, prismArguments, root, stop, temporaryFolder } from '../servers/launch.ts';

const GIVE_UP_MS = 60_000;

interface Start {
  readonly name: string;
  /** `kept` is a folder whose data survives restarts. */
  readonly args: (port: number, kept: string) => string[];
}

/** One start of one server. */
interface Started {
  readonly milliseconds: number;
  /** CPU time of its process until the first 200. */
  readonly cpuMilliseconds: number;
  readonly megabytes: number;
  /** Cores that other processes kept busy meanwhile. */
  readonly busyOthers: number;
}

const own = (file: string) => (port: number) => [join('bench', 'servers', file), '--port', String(port)];
const names = {
  static: 'node:http, fixed answer',
  sandbox: 'custos sandbox',
  prism: 'prism mock',
};

const starts: readonly Start[] = [
  { name: names.static, args: own('static.ts') },
  { name: 'bare', args: own('bare.ts') },
  { name: 'fastify', args: own('fastify.ts') },
  { name: names.sandbox, args: (port) => [programs.bundle, ...custosArguments('sandbox', port), '--quiet'] },
  {
    name: 'custos sandbox --data, not its first start',
    args: (port, kept) => [programs.bundle, ...custosArguments('sandbox', port), '--quiet', '--data', kept],
  },
  { name: 'custos mock', args: (port) => [programs.bundle, ...custosArguments('mock', port), '--quiet'] },
  { name: names.prism, args: prismArguments },
];

/** From the start of a process to its first 200. */
export const startUp: BenchCase = {
  about: 'from the start of the process to its first 200, and what is resident then (G6)',
  needsPeers: true,
  async run(bench) {
    const found = new Map<string, Started[]>(starts.map(({ name }) => [name, []]));
    const kept = temporaryFolder();
    for (const start of starts) {
      bench.report(`warming up ${start.name}`);
      // Fills the compile cache, the certificate folder and the file cache of the system.
      await startOnce(start, kept);
    }
    for (let round = 1; round <= bench.starts; round += 1) {
      for (const start of starts) {
        bench.report(`start ${round} of ${bench.starts}: ${start.name}`);
        found.get(start.name)?.push(await startOnce(start, kept));
      }
    }
    return report(found);
  },
};

async function startOnce({ name, args }: Start, kept: string): Promise<Started> {
  const port = await freePort();
  const before = { machine: machineBusyMicroseconds(), own: cpuMicrosecondsOf(process.pid) };
  const startedMs = performance.now();
  const child = spawn(process.execPath, args(port, kept), { cwd: root, stdio: 'ignore' });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  try {
    while (!(await answers200(port))) {
      if (child.exitCode !== null) throw new Error(`${name} ended with code ${child.exitCode}`);
      if (performance.now() - startedMs > GIVE_UP_MS) throw new Error(`${name} did not answer in time`);
      await wait(2);
    }
    const milliseconds = performance.now() - startedMs;
    const cpu = cpuMicrosecondsOf(child.pid as number);
    const ours = cpu + cpuMicrosecondsOf(process.pid) - before.own;
    return {
      milliseconds,
      cpuMilliseconds: cpu / 1000,
      megabytes: residentMegabytesOf(child.pid as number),
      busyOthers: Math.max(0, machineBusyMicroseconds() - before.machine - ours) / (milliseconds * 1000),
    };
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

function report(found: ReadonlyMap<string, readonly Started[]>) {
  const all = (name: string, value: keyof Started): number[] =>
    (found.get(name) ?? []).map((started) => started[value]);
  const least = (name: string): number => Math.min(...all(name, 'milliseconds'));
  const middle = (name: string): number => median(all(name, 'milliseconds'));
  const leastCpu = (name: string): number => Math.min(...all(name, 'cpuMilliseconds'));
  const table: Table = {
    title: 'Start to first 200 of GET /v1/wallets over plain HTTP',
    columns: ['server', 'min ms', 'ratio', 'median ms', 'ratio', 'CPU ms', 'ratio', 'resident MB'],
    rows: [...found.keys()].map((name) => [
      name,
      ...[least(name), least(name) / least(names.static)],
      ...[middle(name), middle(name) / middle(names.static)],
      ...[leastCpu(name), leastCpu(name) / leastCpu(names.static)],
      median(all(name, 'megabytes')),
    ]),
  };
  const sandbox = all(names.sandbox, 'milliseconds');
  const megabytes = median(all(names.sandbox, 'megabytes'));
  const goals = [
    atMost('G6', 'start-up: sandbox to node:http, minima', least(names.sandbox) / least(names.static), 2.2),
    atLeast('G6', 'start-up: Prism to sandbox, minima', least(names.prism) / least(names.sandbox), 15),
    atMost('G6', 'start-up: sandbox resident after its first answer', megabytes, 150, 'MB'),
    atMost('figure', `start-up: sandbox, median of ${sandbox.length}`, median(sandbox), 1000, 'ms'),
    atMost('figure', 'start-up: sandbox, slowest', Math.max(...sandbox), 1000, 'ms'),
  ];
  const busyOthers = median([...found.keys()].flatMap((name) => all(name, 'busyOthers')));
  return { tables: [table], goals, busyOthers };
}
