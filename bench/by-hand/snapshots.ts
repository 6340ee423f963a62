import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Agent } from 'undici';
import { startSandbox } from '../../src/compose/sandbox.ts';

// Measures what it costs to save and load a snapshot of 10,000 wallets and to reset, in memory and in a folder, over
// HTTPS: `node bench/by-hand/snapshots.ts [wallets]`.

const wallets = Number(process.argv[2] ?? 10_000);
const rounds = 10;

async function measure(dataFolder: string | undefined): Promise<void> {
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
  const credentials = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
  const headers = { authorization: `Basic ${credentials}`, 'service-app-id': sandbox.appId };
  for (let made = 0; made < wallets; made += 100) {
    const batch = Array.from({ length: Math.min(100, wallets - made) }, () => ({ chain_type: 'ethereum' }));
    await ask('/v1/wallets/batch', { wallets: batch }, headers);
  }
  const times: Record<string, number[]> = { save: [], load: [], reset: [] };
  const timed = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const beganMs = performance.now();
    await work();
    times[name]!.push(performance.now() - beganMs);
  };
  let bytes = 0;
  for (let round = 0; round < rounds; round += 1) {
    await timed('save', async () => {
      ({ bytes } = await ask('/_sandbox/snapshots', { name: 'all' }));
    });
    await timed('reset', () => ask('/_sandbox/reset'));
    await timed('load', () => ask('/_sandbox/snapshots/all/load'));
  }
  console.log(
    `${dataFolder === undefined ? 'in memory' : 'in a folder'}: ${wallets} wallets, ${bytes} bytes`,
  );
  for (const [name, list] of Object.entries(times)) {
    const sorted = list.sort((a, b) => a - b).map((ms) => ms.toFixed(1));
    console.log(
      `  ${name.padEnd(6)} median ${sorted[rounds / 2]} ms, least ${sorted[0]}, most ${sorted.at(-1)}`,
    );
  }
  await dispatcher.destroy();
  await sandbox.close();
}

await measure(undefined);
const folder = mkdtempSync(join(tmpdir(), 'custos-snapshots-'));
try {
  await measure(folder);
} finally {
  rmSync(folder, { recursive: true });
}
