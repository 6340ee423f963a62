import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../support/postgres/embedded-postgres.ts';
import { runAdversary } from './adversary.ts';

/*
 * node test/adversary/main.ts --minutes 5             five attackers at a server, and an honest client
 * node test/adversary/main.ts --minutes 5 --seed 17   with the same choices of the attackers
 * node test/adversary/main.ts --minutes 5 --workers 2 a server of several processes, one of which is killed now and then
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string' },
    workers: { type: 'string', default: '1' },
  },
});
const seed = values.seed ?? String(randomInt(1_000_000));
const attackMs = Number(values.minutes) * 60_000;
if (!(attackMs > 0)) throw new Error(`expected --minutes to be above 0, got \`${values.minutes}\``);

async function main(): Promise<boolean> {
  process.stdout.write(`seed ${seed}; steps of the clock are left out: custos serve takes no clock\n`);
  const postgres = await startEmbeddedPostgres();
  try {
    const { faults, figures } = await runAdversary({
      ...{ seed, attackMs, aloneMs: Math.min(20_000, attackMs / 3), databaseUrl: postgres.urlOf('postgres') },
      ...{ calmMs: 6_000, liesMs: 4_000, isLong: true, floorMs: 2_500, workers: Number(values.workers) },
    });
    process.stdout.write(`${JSON.stringify({ seed, ...figures }, undefined, 2)}\n`);
    for (const { rule, text } of faults) process.stderr.write(`- ${rule}: ${text}\n`);
    if (faults.length > 0) process.stderr.write(`${faults.length} faults with --seed ${seed}\n`);
    return faults.length === 0;
  } finally {
    await postgres.stop();
  }
}

process.exit((await main()) ? 0 : 1);
