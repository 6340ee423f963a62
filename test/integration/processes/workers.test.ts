import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

// Real processes: `custos serve --workers 2` with clients that keep their connections.

const isLong = process.env.TEST_LONG === '1';
const clients = isLong ? 32 : 8;
const restarts = isLong ? 5 : 1;

interface Line {
  readonly msg: string;
  readonly worker?: number;
  readonly url?: string;
  readonly admin?: string;
  readonly pid?: number;
}

async function serveByWorkers() {
  const settings = await serveSettings();
  const env = {
    ...settings.env,
    CUSTOS_DRAIN_SECONDS: '1',
    CUSTOS_RATE_LIMIT: '0',
    CUSTOS_MAX_DELAY_MS: '0',
  };
  const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
  const app = JSON.parse(created.stdout) as { id: string; secret: string };
  const custos = await startCustos(['serve', '--workers', '2'], { env });
  const lines = (): Line[] =>
    custos
      .output()
      .stdout.split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  const said = (message: string): Line[] => lines().filter(({ msg }) => msg === message);
  const ready = (): Line | undefined => said('ready').find(({ worker }) => worker === undefined);
  await waitFor(() => ready() !== undefined || custos.process.exitCode !== null);
  if (ready() === undefined) throw new Error(`serve ended: ${(await custos.ended()).stderr}`);
  return { custos, app, ca: settings.ca, said, ...ready()! };
}

test('workers share a port, are replaced without a failed request, and one that is killed is replaced', async () => {
  const { custos, app, ca, said, url, admin } = await serveByWorkers();
  const agent = new Agent({ connect: { ca }, connections: clients, pipelining: 1 });
  const headers = {
    authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
    'service-app-id': app.id,
  };
  let isOver = false;
  let answered = 0;
  const failures: unknown[] = [];
  async function keepSending(): Promise<void> {
    while (!isOver) {
      try {
        const { statusCode, body } = await agent.request({
          ...{ origin: url!, path: '/v1/wallets', method: 'GET', headers },
        });
        const text = await body.text();
        if (statusCode === 200) answered += 1;
        else failures.push(text);
      } catch (error) {
        failures.push(error);
      }
    }
  }
  const sending = Array.from({ length: clients }, keepSending);
  for (let restart = 1; restart <= restarts; restart += 1) {
    custos.process.kill('SIGHUP');
    await waitFor(() => said('all workers were replaced').length === restart, 60_000);
  }
  isOver = true;
  await Promise.all(sending);
  expect(failures).toEqual([]);
  expect(answered).toBeGreaterThan(100);
  // Every worker has served, and the metrics are those of the workers that are there now.
  const numbers = new Set(said('ready').map(({ worker }) => worker));
  expect(numbers.size).toBe(1 + 2 * (restarts + 1));
  const metrics = await (await fetch(`${admin}/metrics`)).text();
  const counted = [...metrics.matchAll(/^custos_http_requests_total\{operation="listWallets",.*\} (\d+)$/gm)];
  expect(counted).toHaveLength(1);
  expect(Number(counted[0]![1])).toBeGreaterThan(0);
  expect((await fetch(`${admin}/readyz`)).status).toBe(200);

  const before = said('ready').length;
  process.kill(said('ready').at(-1)!.pid!, 'SIGKILL');
  await waitFor(() => said('ready').length === before + 1, 60_000);
  expect(said('process exited unexpectedly; restarting it')).toHaveLength(1);

  await agent.destroy();
  const { code, stderr } = await custos.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(said('stopped').filter(({ worker }) => worker === undefined)).toHaveLength(1);
}, 180_000);
