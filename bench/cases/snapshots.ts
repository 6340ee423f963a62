import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import type { Bench, BenchCase } from '../bench-case.ts';
import { median } from '../measure/rounds.ts';
import { atMost, type Table } from '../report.ts';
import { launchCustos } from '../servers/custos.ts';
import { temporaryFolder } from '../servers/launch.ts';

const WALLETS = 10_000;
/** What one request can create. */
const BATCH = 100;

const limitsMs = { save: 50, load: 50, reset: 20 } as const;
type Work = keyof typeof limitsMs;

/** What the disk takes for as many bytes, which a program can only add to. */
const PLAIN_FILE = 'a file as large, written and synced';

interface Place {
  readonly name: string;
  readonly bytes: number;
  /** Milliseconds of each round. */
  readonly times: Readonly<Record<Work, number[]>>;
  /** The same for a plain file in the same folder. */
  readonly plainMs: readonly number[];
}

/** What it costs to save and load a snapshot of 10,000 wallets, and to reset, over HTTPS. */
export const snapshots: BenchCase = {
  about: 'saving and loading a snapshot of 10,000 wallets, and a reset, in memory and in a folder',
  needsPeers: false,
  async run(bench) {
    return report([
      await measure(bench, 'in memory', undefined),
      await measure(bench, 'in a folder', temporaryFolder()),
    ]);
  },
};

async function measure(bench: Bench, name: string, dataFolder: string | undefined): Promise<Place> {
  bench.report(`${WALLETS} wallets ${name}`);
  const data = dataFolder === undefined ? [] : ['--data', dataFolder];
  const server = await launchCustos({ command: 'sandbox', https: true, flags: ['--seed-data', ...data] });
  const dispatcher = new Agent({ connect: { ca: server.caPem } });
  const ask = async (path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await dispatcher.request({
      ...{ origin: server.origin, path, method: 'POST' },
      headers: { 'content-type': 'application/json', ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  };
  try {
    const credentials = Buffer.from(`${server.appId}:${server.appSecret}`).toString('base64');
    const headers = { authorization: `Basic ${credentials}`, 'service-app-id': server.appId };
    const wallets = Array.from({ length: BATCH }, () => ({ chain_type: 'ethereum' }));
    for (let made = 0; made < WALLETS; made += BATCH) await ask('/v1/wallets/batch', { wallets }, headers);
    const times: Record<Work, number[]> = { save: [], load: [], reset: [] };
    const plainMs: number[] = [];
    const timed = async (work: Work, request: () => Promise<unknown>): Promise<void> => {
      const beganMs = performance.now();
      await request();
      times[work].push(performance.now() - beganMs);
    };
    let bytes = 0;
    for (let round = 1; round <= bench.starts; round += 1) {
      bench.report(`round ${round} of ${bench.starts}, ${name}`);
      await timed('save', async () => {
        ({ bytes } = await ask('/_sandbox/snapshots', { name: 'all' }));
      });
      await timed('reset', () => ask('/_sandbox/reset'));
      await timed('load', () => ask('/_sandbox/snapshots/all/load'));
      if (dataFolder !== undefined) plainMs.push(writePlainFile(join(dataFolder, 'plain'), bytes));
    }
    return { name, bytes, times, plainMs };
  } finally {
    await dispatcher.destroy();
    await server.stop();
  }
}

/** Result: milliseconds. */
function writePlainFile(path: string, bytes: number): number {
  const content = Buffer.alloc(bytes, 1);
  const beganMs = performance.now();
  writeFileSync(path, content, { flush: true });
  const tookMs = performance.now() - beganMs;
  rmSync(path);
  return tookMs;
}

function report(places: readonly Place[]) {
  const works = Object.keys(limitsMs) as Work[];
  const table: Table = {
    title: `${WALLETS} wallets, over HTTPS, ms`,
    columns: ['', 'work', 'least', 'median', 'most', 'MB'],
    rows: places.flatMap(({ name, bytes, times, plainMs }) => [
      ...works.map((work) => rowOf(name, work, times[work], bytes)),
      ...(plainMs.length === 0 ? [] : [rowOf(name, PLAIN_FILE, plainMs, bytes)]),
    ]),
  };
  const goals = places.flatMap(({ name, times }) =>
    works.map((work) => {
      const what = `${work} of ${WALLETS} wallets ${name}, median`;
      return atMost('figure', what, median(times[work]), limitsMs[work], 'ms');
    }),
  );
  return { tables: [table], goals };
}

function rowOf(place: string, work: string, times: readonly number[], bytes: number): Table['rows'][number] {
  return [place, work, Math.min(...times), median(times), Math.max(...times), bytes / 1e6];
}
