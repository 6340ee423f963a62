import { Client } from 'pg';
import { expect, test } from 'vitest';
import { figureSize, isLong, noteFigure } from '../../figures/figure.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { runCommand, type StartedCustos, startCustos, waitFor } from '../../support/run-custos.ts';

/*
 * How long work of a killed process waits, with real processes:
 * `npm run figures -- take-over`
 */

const kills = figureSize({ short: 0, long: 10 });
const LEASE_MS = 60_000;

test.runIf(isLong)('another process takes over within seconds', { timeout: 1_200_000 }, async () => {
  const { env } = await serveSettings();
  await runCommand(['migrate'], { env });
  const client = new Client({ connectionString: env.DATABASE_URL });
  await client.connect();
  const processes = async (): Promise<string[]> =>
    (await client.query<{ id: string }>('select id from server_processes')).rows.map(({ id }) => id);
  const startAnother = async (): Promise<{ custos: StartedCustos; id: string }> => {
    const before = new Set(await processes());
    const custos = await startCustos(['serve'], { env });
    await waitFor(() => custos.output().stdout.includes('"ready"') || custos.process.exitCode !== null);
    for (;;) {
      const id = (await processes()).find((each) => !before.has(each));
      if (id !== undefined) return { custos, id };
      if (custos.process.exitCode !== null) throw new Error(custos.output().stderr);
    }
  };
  const claim = (caip2: string, owner: string) =>
    client.query(
      "insert into chain_positions (caip2, position, leased_until_ms, claimed_by) values ($1, '', $2, $3)",
      [caip2, Date.now() + LEASE_MS, owner],
    );
  const isFree = async (caip2: string): Promise<boolean> => {
    const { rows } = await client.query<{ leased_until_ms: string }>(
      'select leased_until_ms from chain_positions where caip2 = $1',
      [caip2],
    );
    return Number(rows[0]!.leased_until_ms) <= Date.now();
  };
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  const survivor = await startAnother();
  const waits: number[] = [];
  try {
    for (let kill = 1; kill <= kills; kill += 1) {
      const victim = await startAnother();
      await claim(`kill:${kill}`, victim.id);
      // Long enough to show that the work of a process that is alive is not taken over.
      await pause(3_000 + Math.random() * 1_000);
      expect(await isFree(`kill:${kill}`)).toBe(false);
      victim.custos.process.kill('SIGKILL');
      const killedAtMs = performance.now();
      while (!(await isFree(`kill:${kill}`))) await pause(20);
      waits.push(Math.round(performance.now() - killedAtMs));
      await victim.custos.ended();
    }
  } finally {
    await survivor.custos.stop();
    await client.end();
  }
  const [leastMs, mostMs] = [Math.min(...waits), Math.max(...waits)];
  noteFigure({ kills, leastMs, mostMs, waitsMs: waits.join(' ') });
  // Half of what the lease would last. On a quiet machine it takes 6 s.
  expect(mostMs).toBeLessThan(LEASE_MS / 2);
});
