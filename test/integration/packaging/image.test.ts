import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadOrCreateCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

// Builds the image and runs it as the documentation and the compose file say, where there is a container engine:
// CONTAINER_ENGINE='docker', with CONTAINER_BUILD_FLAGS and CONTAINER_RUN_FLAGS if it needs any.
// `test/support/packaging/stand-in-images.sh` makes the base images where no image registry can be reached.
const words = (text = ''): string[] => text.split(' ').filter((word) => word !== '');
const [engine = '', ...engineFlags] = words(process.env.CONTAINER_ENGINE);
const runFlags = words(process.env.CONTAINER_RUN_FLAGS);
const root = join(import.meta.dirname, '..', '..', '..');
const image = 'custos-test';

function run(...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(engine, [...engineFlags, ...args], { encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

/** A container on the network of this machine, whose file system cannot be written, as a user without rights. */
const confined = [
  '--read-only',
  '--tmpfs',
  '/tmp',
  '--cap-drop',
  'ALL',
  '--security-opt',
  'no-new-privileges',
];

interface Container extends Disposable {
  readonly name: string;
}

function start(flags: readonly string[], command: readonly string[]): Container {
  const name = `custos-test-${randomBytes(4).toString('hex')}`;
  const started = run(
    'run',
    '--detach',
    '--name',
    name,
    '--network',
    'host',
    ...runFlags,
    ...flags,
    image,
    ...command,
  );
  expect(started).toMatchObject({ status: 0 });
  return { name, [Symbol.dispose]: () => void run('rm', '--force', name) };
}

/** Waits until a command in a container succeeds. */
async function untilSucceeds(name: string, command: readonly string[]): Promise<void> {
  await expect
    .poll(() => run('exec', name, ...command), { timeout: 30_000, interval: 500 })
    .toMatchObject({ status: 0 });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe.runIf(engine !== '')('the image', { timeout: 120_000 }, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'custos-image-'));
    chmodSync(folder, 0o755);
    const flags = words(process.env.CONTAINER_BUILD_FLAGS);
    expect(run('build', ...flags, '--tag', image, root)).toMatchObject({ status: 0 });
  }, 900_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  test('the image is a sandbox that is confined, checks itself, and starts with compiled code', async () => {
    const port = String(await freePort());
    const url = `https://localhost:${port}`;
    const flags = ['--host', '0.0.0.0', '--public-url', url, '--port', port];
    using sandbox = start(confined, ['sandbox', ...flags, '--seed', 'demo', '--seed-data']);
    const { Config } = JSON.parse(run('inspect', sandbox.name).output)[0];
    await untilSucceeds(sandbox.name, [...words('/nodejs/bin/node dist/custos.js healthcheck --url'), url]);
    expect([Config.User, Config.Healthcheck?.Test?.slice(1)]).toEqual([
      '65532',
      ['/nodejs/bin/node', 'dist/custos.js', 'healthcheck'],
    ]);
    const ca = join(folder, 'ca.pem');
    expect(run('cp', `${sandbox.name}:/tmp/custos-65532/ca.pem`, ca)).toMatchObject({ status: 0 });
    const dispatcher = new Agent({ connect: { ca: readFileSync(ca, 'utf8') } });
    const answer = await request(`${url}/openapi.json`, { dispatcher });
    expect(answer.statusCode).toBe(200);
    await answer.body.dump();
    await dispatcher.close();
    // With this variable, Node says on stderr what it does with the compiled code.
    const command = words('/nodejs/bin/node --max-semi-space-size=8 dist/custos.js --version');
    const kept = run('exec', '--env', 'NODE_DEBUG_NATIVE=COMPILE_CACHE', sandbox.name, ...command);
    expect(kept.output).toMatch(/program\.cjs was accepted/);
    expect(run('stop', '--time', '10', sandbox.name)).toMatchObject({ status: 0 });
    expect(run('inspect', '--format', '{{.State.ExitCode}}', sandbox.name).output.trim()).toBe('0');
  });

  test('migrates and serves with the settings of the compose file', async () => {
    const { services } = parse(readFileSync(join(root, 'packaging/compose.yaml'), 'utf8'), { merge: true });
    const { custos, migrate } = services;
    expect([custos.read_only, custos.tmpfs, custos.cap_drop]).toEqual([true, ['/tmp'], ['ALL']]);
    const secrets = await writeSecrets(folder);
    const [port, adminPort] = [await freePort(), await freePort()];
    const environment: Record<string, string> = {
      ...custos.environment,
      ...{ DATABASE_URL: await freshPostgres(), CUSTOS_PUBLIC_URLS: `https://localhost:${port}` },
      ...{ CUSTOS_PORT: String(port), CUSTOS_ADMIN_PORT: String(adminPort) },
    };
    const variables = Object.entries(environment).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const flags = [...confined, '--volume', `${secrets}:/run/custos:ro`, ...variables];
    using migration = start(flags, migrate.command);
    expect(run('wait', migration.name).output.trim()).toBe('0');
    using server = start(flags, custos.command);
    const [, ...check] = custos.healthcheck.test as string[];
    await untilSucceeds(server.name, [...check.slice(0, -1), String(adminPort)]);
    expect(run('stop', '--time', '60', server.name)).toMatchObject({ status: 0 });
    expect(run('inspect', '--format', '{{.State.ExitCode}}', server.name).output.trim()).toBe('0');
  });
});

/** The files of `packaging/secrets/`, which the user of the image can read. */
async function writeSecrets(folder: string): Promise<string> {
  const secrets = mkdtempSync(join(folder, 'secrets-'));
  const { cert, key } = await loadOrCreateCertificate(mkdtempSync(join(folder, 'certificate-')), {
    ...{ clock: systemClock, entropy: systemEntropy, hosts: ['localhost'] },
  });
  const files = { 'master-key': randomBytes(32).toString('hex'), 'tls.crt': cert, 'tls.key': key };
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(secrets, name), content, { mode: 0o644 });
  chmodSync(secrets, 0o755);
  return secrets;
}
