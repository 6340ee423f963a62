import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchCase } from '../bench-case.ts';
import { median } from '../measure/rounds.ts';
import { atMost, type Table } from '../report.ts';
import { bundleOwn } from '../servers/bundle-own.ts';
import { freePort, root, temporaryFolder } from '../servers/launch.ts';

const GIVE_UP_MS = 60_000;
const STOP_WITHIN_MS = 12_000;
/** Kept after the first start of a build, when it has written its bytecode. */
const BYTECODE_MS = 4_000;
const names = {
  nothing: 'npm start of an empty node',
  http: 'npm start of node:http, fixed answer, bundled',
  required: 'npm start of bare with SQLite and the required packages, bundled',
  custos: 'npm start of Custos with --data, to the banner',
};

interface NpmStart {
  readonly name: string;
  /** A folder with a package.json. */
  readonly folder: string;
  readonly args: (port: number) => readonly string[];
  /** What it prints when it is ready. Without it, it is ready when it accepts a connection. */
  readonly banner?: string;
  /** Whether it ends by itself, instead of serving. */
  readonly ends?: boolean;
}

/** From `npm start` to the banner, as a newcomer waits for it, when nothing has to be built. */
export const npmStart: BenchCase = {
  about: 'from `npm start` to the banner, when nothing has changed since the build',
  needsPeers: false,
  async run(bench) {
    const fixed = await bundleOwn('static.ts');
    const required = await bundleOwn('required.ts');
    const data = temporaryFolder();
    const starts: readonly NpmStart[] = [
      { name: names.nothing, folder: packageThatRuns('node -e 0'), args: () => [], ends: true },
      { name: names.http, folder: packageThatRuns(`node ${fixed}`), args: portOnly },
      {
        name: names.required,
        folder: packageThatRuns(`node ${required}`),
        args: (port) => [...portOnly(port), '--work', 'stored'],
      },
      {
        name: names.custos,
        folder: root,
        args: (port) => [...portOnly(port), '--data', data],
        banner: 'Press Ctrl-C',
      },
    ];
    const found = new Map<string, number[]>(starts.map(({ name }) => [name, []]));
    for (const start of starts) {
      bench.report(`warming up ${start.name}`);
      await millisecondsOf(start, BYTECODE_MS);
    }
    for (let round = 1; round <= bench.starts; round += 1) {
      for (const start of starts) {
        bench.report(`start ${round} of ${bench.starts}: ${start.name}`);
        found.get(start.name)?.push(await millisecondsOf(start));
      }
    }
    return report(found);
  },
};

const portOnly = (port: number): readonly string[] => ['--port', String(port)];

function packageThatRuns(start: string): string {
  const folder = temporaryFolder();
  const content = { name: 'started', private: true, scripts: { start } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(content));
  return folder;
}

/** How long one `npm start` takes; then ends it. */
async function millisecondsOf({ name, folder, args, banner, ends }: NpmStart, keptMs = 0): Promise<number> {
  const port = await freePort();
  const startedMs = performance.now();
  // A group of its own, so that npm and all it starts can be ended.
  const child = spawn('npm', ['start', '--', ...args(port)], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const kill = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  process.once('exit', kill);
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString('utf8');
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const isReady = async (): Promise<boolean> => {
    if (ends === true) return child.exitCode === 0;
    return banner === undefined ? await accepts(port) : printed.includes(banner);
  };
  try {
    while (!(await isReady())) {
      if (child.exitCode !== null) throw new Error(`${name} ended with code ${child.exitCode}`);
      if (performance.now() - startedMs > GIVE_UP_MS) throw new Error(`${name} was not ready in time`);
      await wait(2);
    }
    const milliseconds = performance.now() - startedMs;
    await wait(keptMs);
    return milliseconds;
  } finally {
    if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGTERM');
    const timer = setTimeout(kill, STOP_WITHIN_MS);
    await ended;
    clearTimeout(timer);
    process.off('exit', kill);
  }
}

function accepts(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}`, { signal: AbortSignal.timeout(GIVE_UP_MS) }).then(
    () => true,
    () => false,
  );
}

function report(found: ReadonlyMap<string, readonly number[]>) {
  const least = (name: string): number => Math.min(...(found.get(name) ?? []));
  const table: Table = {
    title: '`npm start` until it is ready',
    columns: ['what', 'min ms', 'ratio', 'median ms'],
    rows: [...found].map(([name, all]) => [
      name,
      least(name),
      least(name) / least(names.http),
      median([...all]),
    ]),
  };
  const goals = [
    atMost({
      id: 'figure',
      what: '`npm start` to the banner',
      measured: least(names.custos),
      limit: 700,
      unit: 'ms',
    }),
    atMost({
      id: 'G6',
      what: '`npm start`: Custos to bare with SQLite and the required packages, bundled, minima',
      measured: least(names.custos) / least(names.required),
      limit: 1.4,
    }),
  ];
  return { tables: [table], goals };
}
