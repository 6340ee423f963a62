import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { arch, cpus, platform } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import { FailedSeed, type SimulationResult, simulate } from './simulate.ts';

/*
 * node test/simulation/main.ts --seed 17 --steps 200            one seed, twice: same hash, or what fails; --log writes all that happened
 * node test/simulation/main.ts --seeds 1000 --from 1            many seeds; --out writes the result as JSON, --minutes ends it in time
 */

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    steps: { type: 'string', default: '200' },
    minutes: { type: 'string', default: 'Infinity' },
    out: { type: 'string' },
    log: { type: 'string' },
  },
});
const steps = Number(values.steps);
const yearMs = 365.25 * 24 * 3_600_000;

interface Failure {
  readonly seed: string;
  readonly message: string;
}

async function runOne(seed: string): Promise<boolean> {
  try {
    const { log } = values;
    if (log !== undefined) writeFileSync(log, '');
    const onLine = log === undefined ? undefined : (line: string) => appendFileSync(log, `${line}\n`);
    const first = await simulate(seed, steps, onLine);
    const again = await simulate(seed, steps);
    const isSame = first.hash === again.hash;
    process.stdout.write(`${JSON.stringify({ ...first, isSame }, undefined, 2)}\n`);
    return isSame;
  } catch (error) {
    if (!(error instanceof FailedSeed)) throw error;
    process.stderr.write(`${error.message}\n${inspect(error.cause)}\n`);
    return false;
  }
}

async function runMany(count: number, from: number): Promise<boolean> {
  const beganMs = performance.now();
  const failures: Failure[] = [];
  const results: SimulationResult[] = [];
  const endMs = beganMs + Number(values.minutes) * 60_000;
  for (let index = 0; index < count && performance.now() < endMs; index += 1) {
    const seed = String(from + index);
    try {
      results.push(await simulate(seed, steps));
    } catch (error) {
      if (!(error instanceof FailedSeed)) throw error;
      process.stderr.write(`${error.message}\n`);
      failures.push({ seed, message: error.message.split('\n')[0]! });
    }
    if ((index + 1) % 50 === 0)
      process.stderr.write(`${index + 1} of ${count} seeds, ${failures.length} failed\n`);
  }
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const report = {
    ...summaryOf(results, failures),
    size: results.length + failures.length,
    from,
    steps,
    seconds,
  };
  const text = `${JSON.stringify(report, undefined, 2)}\n`;
  process.stdout.write(text);
  if (values.out !== undefined) writeFileSync(values.out, text);
  return failures.length === 0;
}

function summaryOf(results: readonly SimulationResult[], failures: readonly Failure[]) {
  const sum = (of: (result: SimulationResult) => number) =>
    results.reduce((total, each) => total + of(each), 0);
  const outcomes: Record<string, number> = {};
  for (const { figures } of results)
    for (const [name, count] of Object.entries(figures.outcomes))
      outcomes[name] = (outcomes[name] ?? 0) + count;
  return {
    figure: 'simulation',
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    machine: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${platform()} ${arch()}, node ${process.version}`,
    failures,
    virtualYears: Math.round((sum(({ figures }) => figures.virtualMs) / yearMs) * 10) / 10,
    crashes: sum(({ figures }) => figures.crashes),
    diskFaults: sum(({ figures }) => figures.diskFaults),
    interleavings: sum(({ figures }) => figures.resumed),
    events: sum(({ figures }) => figures.events),
    records: sum(({ figures }) => figures.records),
    deliveries: sum(({ figures }) => figures.deliveries),
    outcomes: Object.fromEntries(Object.entries(outcomes).sort(([a], [b]) => a.localeCompare(b))),
  };
}

const isGreen =
  values.seed === undefined
    ? await runMany(Number(values.seeds), Number(values.from))
    : await runOne(values.seed);
process.exit(isGreen ? 0 : 1);
