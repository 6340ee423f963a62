import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadOrCreateCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { readServeConfig } from '../../../src/config/config.ts';
import { runCommand, serveCustos } from '../../support/run-custos.ts';
import { startSandbox } from '../../support/sandbox.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-packaging-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Step {
  readonly run?: string;
  readonly uses?: string;
}

describe('the package', () => {
  const manifest = JSON.parse(read('package.json'));

  test('depends on what the build leaves out of the bundle, and on nothing else', () => {
    const [, external = ''] = /^const external = \[(.*)\];$/m.exec(read('codegen/build.ts')) ?? [];
    const names = external.split(', ').map((name) => name.slice(1, -1));
    expect(Object.keys(manifest.dependencies)).toEqual(names);
  });

  test('the package exports files that it contains', () => {
    for (const path of Object.values<string | object>(manifest.exports)) {
      for (const file of typeof path === 'string' ? [path] : Object.values(path)) {
        const isBuilt = String(file).startsWith('./dist/');
        expect(isBuilt || existsSync(join(root, String(file))), String(file)).toBe(true);
      }
    }
  });
});

test('npm start runs the sandbox with its arguments', () => {
  const [, ...args] = JSON.parse(read('package.json')).scripts.start.split(' ');
  const started = spawnSync(process.execPath, [...args, '--help'], { cwd: root, encoding: 'utf8' });
  expect(started).toMatchObject({ status: 0, stdout: expect.stringContaining('Usage: custos sandbox') });
});

test('the library says which Node.js it needs', () => {
  const build = spawnSync(process.execPath, ['codegen/build.ts'], { cwd: root });
  expect(build.status).toBe(0);
  const old =
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })';
  for (const entry of ['testing', 'fixtures', 'matchers', 'jest']) {
    const path = join(root, 'dist', 'testing', `${entry}.js`);
    const flags = ['--import', `data:text/javascript,${encodeURIComponent(old)}`];
    const loaded = spawnSync(process.execPath, [...flags, path], { encoding: 'utf8' });
    expect(loaded).toMatchObject({ status: 1, stdout: '' });
    expect(loaded.stderr).toContain('custos/testing: Node 20.20.2 is too old; run the tests with Node 24');
  }
});

describe('the Dockerfile', () => {
  const lines = read('Dockerfile').replaceAll('\\\n', ' ').split('\n');

  test('copies what the project has, or what an earlier stage built', () => {
    const copied = lines
      .filter((line) => line.startsWith('COPY --from=build'))
      .flatMap((line) => line.split(' ').slice(2, -1));
    const inProject = copied
      .map((path) => path.replace('/custos/', ''))
      .filter((path) => path !== 'dist' && path !== 'node_modules');
    expect(inProject.length).toBeGreaterThan(2);
    expect(inProject.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('the Dockerfile has everything that the build reads in its context', () => {
    const ignored = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'));
    const context = ignored.map((line) => line.slice(1));
    expect(context.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const record = JSON.parse(read('dist/build.json')) as { inputs: Record<string, string> };
    const missing = Object.keys(record.inputs).filter(
      (path) =>
        !path.startsWith('node_modules/') &&
        !context.some((known) => path === known || path.startsWith(`${known}/`)),
    );
    expect(missing).toEqual([]);
  });

  test('runs commands that exist, as a user without rights', async () => {
    const from = lines.filter((line) => line.startsWith('FROM ')).map((line) => line.split(' '));
    const [, last] = from.at(-1)!;
    expect(from.find(([, , , stage]) => stage === last)?.[1]).toMatch(/:nonroot$/);
    const [, ...flags] = JSON.parse(
      lines.find((line) => line.startsWith('CMD'))!.slice('CMD '.length),
    ) as string[];
    expect(await runCommand(['sandbox', ...flags, '--help'])).toMatchObject({ code: 0, stderr: '' });
    expect(await runCommand(['healthcheck', '--help'])).toMatchObject({ code: 0 });
  });
});

test('the compose file has settings and commands that exist', async () => {
  const { services } = parse(read('packaging/compose.yaml'), { merge: true });
  expect(Object.keys(services)).toEqual(['postgres', 'migrate', 'custos']);
  const environment = { ...services.custos.environment, CUSTOS_PUBLIC_URLS: 'https://api.acme.example' };
  environment.DATABASE_URL = environment.DATABASE_URL.replace(/\$\{.*\}/, 'password');
  const certificate = await loadOrCreateCertificate(folder, {
    clock: systemClock,
    entropy: systemEntropy,
    hosts: ['127.0.0.1'],
  });
  const secrets: Record<string, string> = {
    CUSTOS_MASTER_KEY_FILE: randomBytes(32).toString('hex'),
    CUSTOS_TLS_CERT: certificate.cert,
    CUSTOS_TLS_KEY: certificate.key,
  };
  for (const [name, content] of Object.entries(secrets)) {
    expect(environment[name]).toMatch(/^\/run\/custos\//);
    environment[name] = join(folder, name);
    writeFileSync(environment[name], content);
  }
  expect(readServeConfig({}, environment)).toMatchObject({ host: '0.0.0.0', port: 4010, adminPort: 9464 });
  for (const { command, healthcheck } of [services.migrate, services.custos]) {
    expect((await runCommand([...command, '--help'])).code).toBe(0);
    const [, , , ...check] = healthcheck.test ?? [];
    if (check.length > 0) expect((await runCommand([...check, '--help'])).code).toBe(0);
  }
});

test('the compose file of the sandbox starts one that other containers control with the token', async () => {
  const { services } = parse(read('packaging/compose.sandbox.yaml'));
  expect(Object.keys(services)).toEqual(['custos']);
  const { command, environment, healthcheck } = services.custos;
  const defaultOf = (text: string): string => text.replace(/\$\{\w+:-(.*)\}/, '$1');
  const [, , , ...check] = healthcheck.test;
  expect((await runCommand([...check, '--help'])).code).toBe(0);
  const controlToken = defaultOf(environment.CUSTOS_CONTROL_TOKEN);
  await using custos = await serveCustos(command.map(defaultOf), {
    env: { CUSTOS_CONTROL_TOKEN: controlToken },
  });
  expect((await custos.call('GET', '/v1/wallets/ext_wal_alice')).status).toBe(200);
  const { port } = new URL(custos.ready.base_url);
  // As a container, which knows neither the certificate nor loopback.
  const unverified = new Agent({ connect: { rejectUnauthorized: false } });
  const host = otherAddress() ?? '127.0.0.1';
  const origin = `https://${host}:${port}`;
  const ca = await unverified.request({ origin, path: '/ca.pem', method: 'GET' });
  const dispatcher = new Agent({ connect: { ca: await ca.body.text(), servername: 'custos' } });
  const clock = (headers: Record<string, string>) =>
    dispatcher.request({ origin, path: '/_sandbox/clock', method: 'GET', headers });
  const { statusCode, body } = await clock({ host: 'custos:4010', authorization: `Bearer ${controlToken}` });
  expect([statusCode, await body.json()]).toEqual([200, expect.objectContaining({ frozen: false })]);
  if (host !== '127.0.0.1') expect((await clock({ host: 'custos:4010' })).statusCode).toBe(401);
  await Promise.all([unverified.destroy(), dispatcher.destroy()]);
});

/** An address of this machine that is not loopback, if it has one. */
function otherAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;
}

test('custos healthcheck asks a sandbox or an admin port', async () => {
  await using sandbox = await startSandbox({ adminPort: 0 });
  const port = new URL(sandbox.adminUrl!).port;
  const address = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
  expect(await runCommand(['healthcheck', ...address])).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(await runCommand(['healthcheck', '--admin-port', port])).toMatchObject({ code: 0 });
  await sandbox.close();
  expect(await runCommand(['healthcheck', ...address])).toMatchObject({ code: 1 });
  expect(await runCommand(['healthcheck', '--admin-port', port])).toMatchObject({ code: 1 });
  expect(await runCommand(['healthcheck', '--admin-port', 'x'])).toMatchObject({ code: 2 });
});

describe('the action', () => {
  const { inputs, runs } = parse(read('packaging/action/action.yml')) as {
    inputs: Record<string, { description: string; default: string }>;
    runs: { steps: Step[] };
  };
  const scripts = runs.steps.flatMap(({ run }) => (run === undefined ? [] : [run]));

  test('the action has scripts that a shell can parse, and uses the inputs that it declares', () => {
    for (const script of scripts) {
      expect(spawnSync('bash', ['-n'], { input: script })).toMatchObject({ status: 0 });
    }
    const used = [...JSON.stringify(runs).matchAll(/inputs\.([a-z-]+)/g)].map(([, name]) => name);
    expect([...new Set(used)].sort()).toEqual(Object.keys(inputs).sort());
  });

  test('sets the environment of the tests, writes the summary, and returns the exit code of the coverage', () => {
    // A `custos` and an `npm` that write what the scripts expect of them; the commands have tests of their own.
    const bin = join(folder, 'custos', 'node_modules', '.bin');
    mkdirSync(bin, { recursive: true });
    const script = (path: string, text: string) =>
      writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    const ready = JSON.stringify({
      base_url: 'https://127.0.0.1:1',
      app_id: 'a',
      app_secret: 's',
      ca_file: 'c',
      pid: 999999999,
    });
    script(
      join(bin, 'custos'),
      `case "$1 $*" in
sandbox*) echo '${ready}' > ${folder}/custos/ready.json ;;
env*json) echo '{"CUSTOS_APP_SECRET":"s"}' ;;
env*github) echo "CUSTOS_OF=$3" ;;
*) echo report > ${folder}/custos/coverage/summary.md; exit 1 ;;
esac`,
    );
    script(join(bin, 'npm'), 'exit 0');
    symlinkSync(process.execPath, join(bin, 'node'));
    const [env, path, summary] = ['env', 'path', 'summary'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const run = (text: string, PACKAGE = './custos.tgz') =>
      spawnSync('bash', ['-e', '-o', 'pipefail'], {
        input: text,
        encoding: 'utf8',
        env: {
          ...{ PATH: `${bin}:/usr/bin:/bin`, RUNNER_TEMP: folder, PACKAGE, FLAGS: '--seed ci' },
          ...{ GITHUB_ENV: env, GITHUB_PATH: path, GITHUB_STEP_SUMMARY: summary },
        },
      });
    expect(run(scripts[0]!)).toMatchObject({ status: 0, stdout: '::add-mask::s\n' });
    expect(readFileSync(env, 'utf8')).toBe(`CUSTOS_OF=${folder}/custos/ready.json\n`);
    expect(run(scripts[0]!, '')).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('input `package` is missing'),
    });
    expect(run(scripts[1]!)).toMatchObject({ status: 1 });
    expect(readFileSync(summary, 'utf8')).toBe('report\n');
  });
});

// Installs from the registry or the cache of npm.
describe.runIf(process.env.TEST_LONG === '1')('the packed tarball', () => {
  const npm = (cwd: string, ...args: string[]) => spawnSync('npm', args, { cwd, encoding: 'utf8' });
  /** npm, and the seconds that the processors spent on it: unlike those on a clock, they do not depend on other programs. */
  const measuredNpm = (cwd: string, ...args: string[]) => {
    const script = 'TIMEFORMAT=\'%U %S\'; time npm "$@"';
    const { status, stderr } = spawnSync('bash', ['-c', script, 'npm', ...args], { cwd, encoding: 'utf8' });
    const [userSeconds, systemSeconds] = stderr.trim().split('\n').at(-1)!.split(' ').map(Number);
    return { status, stderr, seconds: userSeconds! + systemSeconds! };
  };

  test('installs in 30 s of processor time and 60 MB, and runs in an empty folder', {
    timeout: 600_000,
  }, () => {
    expect(npm(root, 'pack', '--pack-destination', folder)).toMatchObject({ status: 0 });
    const place = join(folder, 'empty');
    mkdirSync(place);
    expect(npm(place, 'init', '--yes')).toMatchObject({ status: 0 });
    const installed = measuredNpm(place, 'install', '--no-audit', join(folder, 'custos-0.1.0.tgz'));
    expect(installed).toMatchObject({ status: 0 });
    expect(installed.seconds).toBeLessThan(30);
    // npm warns of scripts that a package from a file would run at its installation.
    expect(installed.stderr).not.toContain('custos@');
    const files = readdirSync(join(place, 'node_modules'), { recursive: true, encoding: 'utf8' });
    const sizes = files.map((path) => statSync(join(place, 'node_modules', path)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60 * 1024 * 1024);

    const started = `
      npx custos sandbox --port 0 --ready-file ready.json --quiet & sandbox=$!
      timeout 30 sh -c 'until [ -f ready.json ]; do sleep 0.1; done'
      base=$(node -p 'require("./ready.json").base_url') ca=$(node -p 'require("./ready.json").ca_file')
      curl -sf --cacert "$ca" "$base/docs/docs.js" | wc -c
      npx custos healthcheck --ready-file ready.json && echo healthy
      kill "$(node -p 'require("./ready.json").pid')"; wait $sandbox`;
    const { stdout } = spawnSync('bash', ['-c', started], { cwd: place, encoding: 'utf8' });
    expect(stdout).toMatch(/^\d{5}\nhealthy\n$/);
  });
});

test('every package of the lockfile is pinned by its digest', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { link?: boolean; integrity?: string }>;
  };
  const unpinned = Object.entries(packages).filter(
    ([path, { link, integrity }]) => path.includes('node_modules/') && link !== true && !integrity,
  );
  expect(unpinned.map(([path]) => path)).toEqual([]);
});

test.each([
  'packaging/systemd/custos.service',
  'packaging/systemd/custos-signer.service',
  'packaging/kubernetes/custos.yaml',
])('%s names settings and commands that exist', async (path) => {
  const text = read(path);
  const known = [await runCommand(['serve', '--help']), await runCommand(['signer', '--help'])]
    .map(({ stdout }) => stdout)
    .join();
  const settings = [...text.matchAll(/\bCUSTOS_[A-Z_]+\b/g)].map(([name]) => name);
  expect(settings.filter((name) => !known.includes(name))).toEqual([]);
  const flags = [...text.matchAll(/ (--(?!max-)[a-z-]+)/g)].map(([, flag]) => flag!);
  expect(flags.filter((flag) => !known.includes(flag))).toEqual([]);
  expect(text).toMatch(/custos\.js (serve|signer)|args: \[(serve|signer)/);
});

describe("the signer's record of signed requests", () => {
  const stateOf = (args: readonly string[]): string => args[args.indexOf('--state') + 1]!;

  test('survives a restart of its pod', () => {
    const [set] = parseAllDocuments(read('packaging/kubernetes/custos.yaml')).map((document) =>
      document.toJS(),
    );
    expect(set.kind).toBe('StatefulSet');
    const { initContainers } = set.spec.template.spec;
    const [folders, signer] = ['signer-folders', 'signer'].map((name) =>
      initContainers.find((container: { name: string }) => container.name === name),
    );
    const state = stateOf(signer.args);
    const claims = set.spec.volumeClaimTemplates.map(
      (claim: { metadata: { name: string } }) => claim.metadata.name,
    );
    const mounts = signer.volumeMounts.filter(({ mountPath }: { mountPath: string }) =>
      state.startsWith(`${mountPath}/`),
    );
    expect(mounts).toEqual([expect.objectContaining({ name: claims[0] })]);
    expect(folders.volumeMounts).toContainEqual(mounts[0]);
    // What makes the folders, in a folder of this test. A volume gives new folders to its group.
    const script = folders.command.at(-1).replaceAll(/'\/(run|var)/g, `'${folder}/$1`);
    for (let start = 0; start < 2; start += 1) {
      const made = spawnSync(process.execPath, ['-e', `process.umask(0); ${script}`], { encoding: 'utf8' });
      expect(made).toMatchObject({ status: 0, stderr: '' });
      expect(statSync(join(folder, state)).mode & 0o777).toBe(0o700);
      chmodSync(join(folder, state), 0o770);
    }
  });

  test('survives a restart of its machine', () => {
    const unit = read('packaging/systemd/custos-signer.service');
    const [, start = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    const [, kept] = /^StateDirectory=(.*)$/m.exec(unit) ?? [];
    expect(stateOf(start.split(' '))).toBe(`/var/lib/${kept}`);
  });
});
