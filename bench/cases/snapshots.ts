import { Agent } from 'undici';
import { startSandbox } from '../../src/compose/sandbox.ts';
import type { Bench, BenchCase } from '../bench-case.ts';
import { median } from '../measure/rounds.ts';
import { atMost, type Table } from '../report.ts';
import { temporaryFolder } from '../servers/launch.ts';

const WALLETS = 10_000;
/** What one request can create. */
const BATCH = 100;

const limitsMs = { save: 50, load: 50, reset: 20 } as const;
type Work = keyof typeof limitsMs;

interface Place {
  readonly name: string;
  readonly bytes: number;
  /** Milliseconds of each round. */
  readonly times: Readonly<Record<Work, number[]>>;
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
  const sandbox = await startSandbox({
    port: 0,
    seed: 'bench',
    seedData: true,
    logLevel: 'silent',
    dataFolder,
  });
  const dispatcher = new Agent({ connect: { ca: sandbox.caPem } });
  const ask = async (path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await dispatcher.request({
      ...{ origin: sandbox.baseUrl, path, method: 'POST' },
      headers: { 'content-type': 'application/json', ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  };
  try {
    const credentials = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
    const headers = { authorization: `Basic ${credentials}`, 'service-app-id': sandbox.appId };
    const wallets = Array.from({ length: BATCH }, () => ({ chain_type: 'ethereum' }));
    for (let made = 0; made < WALLETS; made += BATCH) await ask('/v1/wallets/batch', { wallets }, headers);
    const times: Record<Work, number[]> = { save: [], load: [], reset: [] };
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
    }
    return { name, bytes, times };
  } finally {
    await dispatcher.destroy();
    await sandbox.close();
  }
}

function report(places: readonly Place[]) {
  const works = Object.keys(limitsMs) as Work[];
  const table: Table = {
    title: `${WALLETS} wallets, over HTTPS, ms`,
    columns: ['', 'work', 'least', 'median', 'most', 'MB'],
    rows: places.flatMap(({ name, bytes, times }) =>
      works.map((work) => [
        ...[name, work, Math.min(...times[work]), median(times[work]), Math.max(...times[work])],
        bytes / 1e6,
      ]),
    ),
  };
  const goals = places.flatMap(({ name, times }) =>
    works.map((work) =>
      atMost({
        id: 'figure',
        what: `${work} of ${WALLETS} wallets ${name}, median`,
        measured: median(times[work]),
        limit: limitsMs[work],
        unit: 'ms',
      }),
    ),
  );
  return { tables: [table], goals };
}
