import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { isLong } from '../../figures/figure.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { runCommand, type StartedCustos, serveCustos, startCustos } from '../../support/run-custos.ts';

// The log only observes. Neither a full disk nor a reader that has ended may stop what serves, or keep it from stopping.

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The exit code, or `hung`. */
async function stopped(custos: StartedCustos): Promise<number | null | 'hung'> {
  const ended = custos.stop().then(({ code }) => code);
  const code = await Promise.race([ended, pause(60_000, 'hung' as const, { ref: false })]);
  if (code === 'hung') custos.process.kill('SIGKILL');
  return code;
}

async function isReady(url: string): Promise<void> {
  for (let round = 0; round < 1_200; round += 1) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return;
    await pause(50);
  }
  throw new Error(`${url} is not ready`);
}

const places = [
  { name: 'a full disk, one process', workers: '1', isDisk: true },
  { name: 'a full disk, two workers', workers: '2', isDisk: true },
  { name: 'a reader that has ended, one process', workers: '1', isDisk: false },
  { name: 'a reader that has ended, two workers', workers: '2', isDisk: false },
];

/** Otherwise each place and each number of processes once. */
const tried = isLong ? places : places.slice(1, 3);

test.each(tried)(
  '$name: the server serves, counts lost lines, signs and stops',
  async ({ workers, isDisk }) => {
    const settings = await serveSettings();
    const [port, adminPort] = [await freePort(), await freePort()];
    const env = { ...settings.env, CUSTOS_PORT: `${port}`, CUSTOS_ADMIN_PORT: `${adminPort}` };
    const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
    const app = JSON.parse(created.stdout) as { id: string; secret: string };
    const full = openSync('/dev/full', 'w');
    const custos = await startCustos(['serve', '--workers', workers], {
      env: { ...env, CUSTOS_RATE_LIMIT: '0' },
      ...(isDisk ? { stdio: ['ignore', full, full] } : {}),
    });
    closeSync(full);
    custos.process.stdout?.destroy();
    custos.process.stderr?.destroy();
    const admin = `http://127.0.0.1:${adminPort}`;
    await isReady(admin);
    const agent = new Agent({ connect: { ca: settings.ca } });
    const headers = {
      authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
      'service-app-id': app.id,
      'content-type': 'application/json',
    };
    const send = async (path: string, body?: object) => {
      const answer = await agent.request({
        ...{ origin: `https://127.0.0.1:${port}`, path, headers, method: body ? 'POST' : 'GET' },
        body: body ? JSON.stringify(body) : null,
      });
      return { status: answer.statusCode, body: (await answer.body.json()) as { id: string } };
    };
    const wallet = await send('/v1/wallets', { chain_type: 'ethereum' });
    const statuses = new Set([wallet.status]);
    for (let round = 0; round < 40; round += 1) {
      statuses.add((await send('/v1/wallets')).status);
      const signing = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
      if (round % 10 === 0) statuses.add((await send(`/v1/wallets/${wallet.body.id}/rpc`, signing)).status);
      await pause(10);
    }
    expect([...statuses]).toEqual([200]);
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    expect(Number(/^custos_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(30);
    expect((await fetch(`${admin}/readyz`)).status).toBe(200);
    await agent.destroy();
    expect(await stopped(custos)).toBe(0);
  },
);

test('a sandbox whose banner and log cannot be written serves and stops', async () => {
  const full = openSync('/dev/full', 'w');
  const custos = await serveCustos(['sandbox'], { stdio: ['ignore', full, full] });
  closeSync(full);
  expect((await custos.call('GET', '/v1/wallets')).status).toBe(200);
  expect(await stopped(custos)).toBe(0);
});
