import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { describe, expect, test } from 'vitest';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { runCommand, waitFor } from '../../support/run-custos.ts';

/*
 * The version before this one, beside it on one database, by hand:
 * `TEST_LONG=1 npx vitest run test/integration/storage/previous-version.test.ts`, in a clone with its history. The version
 * before is the commit before the one that added the newest migration. It starts on its own schema; this version
 * migrates; both serve, and each uses what the other has made.
 */

const root = join(import.meta.dirname, '../../..');
// Each request has a connection of its own: on a busy machine, servers close idle ones just before they are used.
const dispatcher = new Agent({ pipelining: 0 });
const isRun = process.env.TEST_LONG === '1' && existsSync(join(root, '.git'));
const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** A process of a checkout; its settings are in the environment. */
async function serve(checkout: string, env: Record<string, string>) {
  const custos = spawn(process.execPath, [join(checkout, 'src/main.ts'), 'serve'], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [custos.stdout, custos.stderr]) {
    stream.on('data', (text: Buffer) => {
      output += text.toString();
    });
  }
  const ready = () => /"url":"([^"]+)","admin":"([^"]+)"/.exec(output);
  await waitFor(() => ready() !== null || custos.exitCode !== null, 60_000);
  const [, url, admin] = ready() ?? [];
  if (url === undefined) throw new Error(`it ended with ${custos.exitCode}: ${output}`);
  const ended = new Promise((resolve) => custos.once('exit', resolve));
  return {
    ...{ url, admin },
    async stop() {
      custos.kill();
      await ended;
    },
  };
}

describe.runIf(isRun)('the version before beside this one', () => {
  test('each serves what the other has stored', async () => {
    const newest = migrations.at(-1)!.name;
    const added = git('log', '--diff-filter=A', '--format=%H', '--', `src/storage/migrations/${newest}.ts`);
    const before = git('rev-parse', `${added.split('\n').at(-1)!}^`);
    const checkout = mkdtempSync(join(tmpdir(), 'custos-before-'));
    git('worktree', 'add', '--detach', '--force', checkout, before);
    try {
      // Copied with links: the signer may read no other folder than that of its program.
      execFileSync('cp', ['-al', join(root, 'node_modules'), join(checkout, 'node_modules')]);
      await judge(checkout);
    } finally {
      git('worktree', 'remove', '--force', checkout);
      rmSync(checkout, { recursive: true, force: true });
    }
  }, 180_000);
});

async function judge(checkout: string): Promise<void> {
  const { env: settings } = await serveSettings();
  const empty = `${settings.DATABASE_URL}_before`;
  await createDatabase(settings.DATABASE_URL!, empty);
  const { CUSTOS_TLS_CERT: _cert, CUSTOS_TLS_KEY: _key, ...rest } = settings;
  const env = { ...rest, DATABASE_URL: empty, CUSTOS_TRUST_PROXY: '127.0.0.1' };
  const run = (...args: string[]): string =>
    execFileSync(process.execPath, [join(checkout, 'src/main.ts'), ...args], {
      env: { PATH: process.env.PATH ?? '', ...env },
      encoding: 'utf8',
    });
  run('migrate');
  const app = JSON.parse(run('apps', 'create', '--name', 'Globex', '--json')) as {
    id: string;
    secret: string;
  };
  const older = await serve(checkout, env);
  const call = async <Body>(url: string, method: string, path: string, body?: object, key?: string) => {
    const response = await request(`${url}${path}`, {
      ...{ method: method as 'GET', dispatcher },
      headers: {
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
        'service-app-id': app.id,
        'x-forwarded-proto': 'https',
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'service-idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.statusCode, body: (await response.body.json()) as Body };
  };
  const create = (url: string, key: string) =>
    call<{ id: string }>(url, 'POST', '/v1/wallets', { chain_type: 'ethereum' }, key);
  const sign = (url: string, id: string) =>
    call(url, 'POST', `/v1/wallets/${id}/rpc`, {
      method: 'personal_sign',
      params: { message: 'Hello', encoding: 'utf-8' },
    });
  const first = await create(older.url, 'first');

  expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
  const newer = await serve(root, env);
  for (let round = 0; round < 20; round += 1) {
    const [ofOlder, ofNewer] = await Promise.all([
      create(older.url, `older-${round}`),
      create(newer.url, `newer-${round}`),
    ]);
    expect([ofOlder.status, ofNewer.status]).toEqual([200, 200]);
    expect((await sign(newer.url, ofOlder.body.id)).status).toBe(200);
    expect((await sign(older.url, ofNewer.body.id)).status).toBe(200);
    // An idempotency key of one version is known to the other.
    expect((await create(newer.url, `older-${round}`)).body).toEqual(ofOlder.body);
    expect((await create(older.url, `newer-${round}`)).body).toEqual(ofNewer.body);
  }
  expect((await sign(newer.url, first.body.id)).status).toBe(200);
  const { status: ready } = await fetch(`${older.admin}/readyz`);
  process.stdout.write(`${JSON.stringify({ rounds: 20, readinessOfVersionBefore: ready })}\n`);
  // Versions from before migrations were additive by rule report a newer schema as a fault.
  const knowsTheRule = existsSync(join(checkout, 'src/storage/schema/migration-statements.ts'));
  expect(ready).toBe(knowsTheRule ? 200 : 503);
  await newer.stop();
  await older.stop();
}

async function createDatabase(beside: string, url: string): Promise<void> {
  const { Client } = await import('pg');
  const client = new Client({ connectionString: beside });
  await client.connect();
  await client.query(`create database ${new URL(url).pathname.slice(1)}`);
  await client.end();
}
