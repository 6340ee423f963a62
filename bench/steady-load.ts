import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Wallet } from '../src/generated/schemas.ts';
import { type ServingCustos, serveCustos, temporaryFolder } from '../test/support/run-custos.ts';
import { residentMegabytesOf } from './measure/process-usage.ts';

// `node bench/steady-load.ts --minutes 30`: writes, signatures and reads over HTTPS against a sandbox with a
// folder, every check on. Fails when a request does, or when memory grows by a tenth after the first sixth of the time.

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, out: { type: 'string' } },
});
const durationMs = Number(values.minutes) * 60_000;
const clients = 8;
const SAMPLE_MS = 5_000;
const MAX_GROWTH = 0.1;
/** Latencies are kept for so many requests, chosen evenly. */
const KEPT = 100_000;

type Work = 'write' | 'sign' | 'read' | 'list';

interface Tally {
  readonly counts: Record<Work, number>;
  readonly failures: string[];
  readonly latencies: number[];
}

/** One client: creates a wallet, signs with it, reads it and lists, until the time is over. */
async function work(custos: ServingCustos, tally: Tally, untilMs: number): Promise<void> {
  let wallet: Wallet | undefined;
  for (let turn = 0; performance.now() < untilMs; turn += 1) {
    const kind: Work =
      wallet === undefined || turn % 4 === 0
        ? 'write'
        : turn % 4 === 1
          ? 'sign'
          : turn % 40 === 2
            ? 'list'
            : 'read';
    const beganMs = performance.now();
    const answer = await request(custos, kind, wallet?.id ?? '');
    if (answer.status !== 200)
      tally.failures.push(`${kind} answered ${answer.status}: ${answer.text.slice(0, 200)}`);
    else if (kind === 'write') wallet = answer.body as Wallet;
    tally.counts[kind] += 1;
    const count = Object.values(tally.counts).reduce((sum, each) => sum + each, 0);
    if (tally.latencies.length < KEPT) tally.latencies.push(performance.now() - beganMs);
    else tally.latencies[count % KEPT] = performance.now() - beganMs;
  }
}

function request(custos: ServingCustos, kind: Work, id: string) {
  if (kind === 'write') return custos.call<unknown>('POST', '/v1/wallets', { chain_type: 'ethereum' });
  if (kind === 'read') return custos.call<unknown>('GET', `/v1/wallets/${id}`);
  if (kind === 'list') return custos.call<unknown>('GET', '/v1/wallets?limit=20');
  const params = { message: 'steady', encoding: 'utf-8' };
  return custos.call<unknown>('POST', `/v1/wallets/${id}/rpc`, { method: 'personal_sign', params });
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

async function main(): Promise<number> {
  await using custos = await serveCustos(['sandbox', '--data', temporaryFolder(), '--quiet']);
  const tally: Tally = { counts: { write: 0, sign: 0, read: 0, list: 0 }, failures: [], latencies: [] };
  const [beganMs, samples] = [performance.now(), [] as { atMs: number; megabytes: number }[]];
  const sampling = setInterval(
    () => {
      samples.push({ atMs: performance.now() - beganMs, megabytes: residentMegabytesOf(custos.ready.pid) });
    },
    Math.min(SAMPLE_MS, durationMs / 60),
  );
  await Promise.all(Array.from({ length: clients }, () => work(custos, tally, beganMs + durationMs)));
  clearInterval(sampling);
  const inSixth = (sixth: number): number[] =>
    samples
      .filter(({ atMs }) => Math.floor((6 * atMs) / durationMs) === sixth)
      .map(({ megabytes }) => megabytes);
  // The first sixth fills caches and lets the heap find its size.
  const [early, late] = [median(inSixth(1)), median(inSixth(5))];
  const seconds = durationMs / 1000;
  const sorted = tally.latencies.sort((a, b) => a - b);
  const at = (share: number): number =>
    Math.round((sorted[Math.floor(share * sorted.length)] ?? 0) * 10) / 10;
  const growth = late / early - 1;
  const requests = Object.values(tally.counts).reduce((sum, each) => sum + each, 0);
  const failures = tally.failures.slice(0, 10);
  if (growth >= MAX_GROWTH) failures.push(`memory grew by ${(growth * 100).toFixed(1)} %`);
  const report = {
    ...{ requests, requestsPerSecond: Math.round(requests / seconds), ...tally.counts },
    ...{ medianMs: at(0.5), p99Ms: at(0.99) },
    ...{ earlyMegabytes: Math.round(early), lateMegabytes: Math.round(late) },
    growthPercent: Math.round(growth * 1000) / 10,
    failed: tally.failures.length,
    failures,
  };
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  if (values.out !== undefined) writeFileSync(values.out, JSON.stringify(report));
  return failures.length === 0 ? 0 : 1;
}

process.exit(await main());
