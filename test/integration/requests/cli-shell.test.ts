import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Command } from 'commander';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeProgram } from '../../../src/cli/program.ts';
import { announceSandbox } from '../../../src/tools/client/running-sandboxes.ts';
import { call } from '../../support/call.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
const folder = temporaryFolder();
const { TMPDIR, PATH, DISPLAY } = process.env;
beforeAll(async () => {
  // Apart from the sandboxes that run on this machine.
  process.env.TMPDIR = folder;
  sandbox = await startSandbox({ prefix: 'acme' });
});
afterEach(() => restore({ PATH, DISPLAY }));
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  restore({ TMPDIR });
  rmSync(folder, { recursive: true });
});

function restore(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

const announcement = () => ({
  base_url: sandbox.baseUrl,
  ca_file: sandbox.caFile,
  data: null,
  app_id: sandbox.appId,
  app_secret: "it's secret",
  prefix: 'acme',
  version: '0.1.0',
});

describe('custos env', () => {
  test('custos env prints how to reach the running sandbox, as each reader expects it', async () => {
    expect((await runCommand(['env', '--url', 'https://127.0.0.1:9'])).code).toBe(1);
    const withdraw = announceSandbox(announcement());
    try {
      const { stdout } = await runCommand(['env', '--format', 'json']);
      const variables = JSON.parse(stdout);
      expect(variables).toEqual({
        CUSTOS_BASE_URL: sandbox.baseUrl,
        CUSTOS_APP_ID: sandbox.appId,
        CUSTOS_APP_SECRET: "it's secret",
        CUSTOS_CA_FILE: sandbox.caFile,
        CUSTOS_HEADER_PREFIX: 'acme',
        NODE_EXTRA_CA_CERTS: sandbox.caFile,
      });
      const shell = (await runCommand(['env'])).stdout;
      const printed = execFileSync('sh', ['-c', `${shell}printf %s "$CUSTOS_BASE_URL $CUSTOS_APP_SECRET"`]);
      expect(String(printed)).toBe(`${sandbox.baseUrl} it's secret`);
      expect(parseEnv((await runCommand(['env', '--format', 'dotenv'])).stdout)).toEqual(variables);
      expect((await runCommand(['env', '--format', 'github'])).stdout).toContain(
        "CUSTOS_APP_SECRET=it's secret\n",
      );
    } finally {
      withdraw();
    }
  });

  test('the variables lead other commands to that sandbox', async () => {
    const env = { CUSTOS_BASE_URL: sandbox.baseUrl, CUSTOS_CA_FILE: sandbox.caFile };
    expect((await runCommand(['env', '--format', 'github'], { env })).stdout).toContain(sandbox.baseUrl);
    expect((await runCommand(['events', 'list'], { env })).code).toBe(0);
  });
});

describe('custos exec', () => {
  const script = join(folder, 'script.sh');

  async function exec(...text: string[]) {
    writeFileSync(script, text.join('\n'));
    return runCommand(['exec', '--prefix', 'acme', '--', 'sh', script]);
  }

  test('runs a command beside a sandbox and passes its exit code on', async () => {
    const out = join(folder, 'out');
    const { code } = await exec(`echo "$CUSTOS_BASE_URL $CUSTOS_HEADER_PREFIX" > '${out}'`, 'exit 7');
    expect(code).toBe(7);
    const [url = '', prefix] = readFileSync(out, 'utf8').trim().split(' ');
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(prefix).toBe('acme');
    expect((await runCommand(['events', 'list', '--url', url])).stderr).toContain('no sandbox responds');
  });

  test('a command that a signal ended, and one that is not there', async () => {
    expect((await exec('kill -TERM $$')).code).toBe(143);
    const absent = await runCommand(['exec', '--', 'no-such-command']);
    expect(absent).toMatchObject({ code: 127, stderr: 'custos: `no-such-command` is not found\n' });
  });

  test('signals go to the command', async () => {
    const running = exec(`trap 'exit 5' TERM`, `: > '${folder}/started'`, 'while :; do sleep 0.02; done');
    while (!existsSync(join(folder, 'started'))) await new Promise((resolve) => setTimeout(resolve, 20));
    process.emit('SIGTERM');
    expect((await running).code).toBe(5);
  });
});

describe('the output for programs', () => {
  const document = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../openapi/control-plane.json'), 'utf8'),
  );
  const text = readFileSync(join(import.meta.dirname, '../../../docs/commands.md'), 'utf8');
  const [, section = ''] = /\n## Output for programs\n([\s\S]*?)\n## /.exec(text) ?? [];
  /** What a line of each command is, as the table says. */
  const shapes = new Map(
    [...section.matchAll(/^\| (`.*?`) \| (.*) \|$/gm)].flatMap(([, commands = '', shape = '']) =>
      namesIn(commands).map((command): [string, string] => [command, shape]),
    ),
  );

  function namesIn(cell: string): string[] {
    return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  }

  function withJson(command: Command, path: readonly string[] = []): string[] {
    const own = command.options.some(({ long }) => long === '--json') ? [path.join(' ')] : [];
    return [...own, ...command.commands.flatMap((child) => withJson(child, [...path, child.name()]))];
  }

  test('the output for programs is documented for every command that has it', () => {
    expect([...shapes.keys()].sort()).toEqual(withJson(makeProgram()).sort());
    const watched = [...(/^`--watch` of (.*) prints/m.exec(section)?.[1] ?? '').matchAll(/`([^`]+)`/g)];
    const withWatch = (command: Command, path: readonly string[] = []): string[] => [
      ...(command.options.some(({ long }) => long === '--watch') ? [path.join(' ')] : []),
      ...command.commands.flatMap((child) => withWatch(child, [...path, child.name()])),
    ];
    expect(watched.map(([, name]) => name).sort()).toEqual(withWatch(makeProgram()).sort());
  });

  test('the output for programs has the documented schemas and members', async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'document', ...document });
    const at = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
    await call(sandbox, 'createAggregation', {
      body: {
        ...{ name: 'Sent in a day', method: 'eth_signTransaction' },
        metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
        window: { type: 'rolling', seconds: 86_400 },
      },
    });
    for (const [command, ...args] of [
      ['trigger', 'wallet.archived'],
      ['events list'],
      ['events wait', 'wallet.archived'],
      ['clock show'],
      ['clock freeze'],
      ['clock advance', '1s'],
      ['clock next'],
      ['pools', '--chain', 'base'],
      ['clock resume'],
      ['clock set', 'now'],
      ['mine'],
      ['faucet', '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0', '1'],
      ['faults add', 'error', '--operation', 'createWallet', '--code', 'internal_error'],
      ['faults list'],
      ['faults clear'],
      ['snapshot save', 'shapes'],
      ['snapshot list'],
      ['snapshot load', 'shapes'],
      ['snapshot rm', 'shapes'],
      ['scenario list'],
      ['scenario run', 'quorum-short'],
      ['token', 'alice'],
      ['logs', '--no-follow'],
      ['why'],
      ['describe', 'createWallet'],
      ['coverage'],
      ['policy sums'],
      ['doctor'],
      ['reset'],
    ] as const) {
      const needsSandbox = !['describe', 'doctor'].includes(command);
      const { stdout, stderr } = await runCommand([
        ...command.split(' '),
        ...args,
        '--json',
        ...(needsSandbox ? at : []),
      ]);
      const shape = shapes.get(command) ?? '';
      const isLong = shape.includes('several lines');
      const [line = ''] = isLong ? [stdout] : stdout.split('\n');
      if (line === '' && command === 'clock next') continue;
      const printed = JSON.parse(line || 'null');
      const [name = ''] = namesIn(shape);
      if (/^[A-Z]/.test(name)) {
        const inner = shape.startsWith('an entry of') ? '/properties/data/items' : '';
        const validate = ajv.compile({ $ref: `document#/components/schemas/${name}${inner}` });
        validate(printed);
        expect({ command, stderr, errors: validate.errors }).toEqual({ command, stderr: '', errors: null });
      } else {
        const members = namesIn(shape).filter(
          (member) => !['ok', 'warning', 'fault', 'advice'].includes(member),
        );
        expect({ command, keys: Object.keys(printed) }).toEqual({
          command,
          keys: expect.arrayContaining(members),
        });
      }
    }
  });
});

describe('custos open', () => {
  test('custos open prints the URL, and opens it without a shell', async () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const opened = join(folder, 'opened');
    writeFileSync(
      join(bin, 'xdg-open'),
      `#!/bin/sh\nprintf %s "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`,
    );
    chmodSync(join(bin, 'xdg-open'), 0o755);
    restore({ PATH: `${bin}:${PATH}`, DISPLAY: ':0' });
    const address = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
    const url = `${sandbox.baseUrl}/docs`;
    expect((await runCommand(['open', 'docs', '--print', ...address])).stdout).toBe(`${url}\n`);
    expect(existsSync(opened)).toBe(false);
    if (process.platform !== 'linux') return;
    expect((await runCommand(['open', 'docs', ...address])).stdout).toBe(`${url}\n`);
    while (!existsSync(opened)) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(readFileSync(opened, 'utf8')).toBe(url);
  });

  test('custos open of no sandbox fails', async () => {
    expect((await runCommand(['open', '--url', 'https://127.0.0.1:9'])).code).toBe(1);
  });
});

describe('custos doctor', () => {
  const doctor = async (...args: string[]) => {
    const { code, stdout } = await runCommand(['doctor', '--json', ...args]);
    const findings = stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text));
    return { code, of: (name: string) => findings.find((finding) => finding.name === name) };
  };

  test('custos doctor finds nothing wrong with an idle machine, and says so for people, too', async () => {
    const { code, of } = await doctor('--port', '0');
    expect(code).toBe(0);
    expect(of('Node.js')).toEqual({ name: 'Node.js', state: 'ok', text: process.versions.node });
    expect(of('certificate')).toMatchObject({ state: 'ok', text: expect.stringContaining('is valid until') });
    expect((await runCommand(['doctor', '--port', '0'])).stdout).toMatch(/^ok {8}Node\.js {7}\d/);
  });

  test('custos doctor names a port in use, and a running sandbox with a frozen clock and another version', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    const busy = await doctor('--port', String(port));
    await new Promise((resolve) => other.close(resolve));
    expect(busy.code).toBe(1);
    expect(busy.of('port')).toMatchObject({ state: 'fault', text: `${port} is used by another program` });

    const withdraw = announceSandbox({ ...announcement(), version: '0.0.9' });
    const { code, of } = await doctor('--port', new URL(sandbox.baseUrl).port);
    withdraw();
    expect(code).toBe(0);
    expect(of('port').text).toContain('that of the running sandbox');
    expect(of('sandbox')).toMatchObject({ state: 'warning', advice: 'stop it and start it again' });
    expect(of('clock')).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('frozen at 2026-01-01'),
    });
  });

  test('custos doctor names a sandbox that does not respond, and not as one to select', async () => {
    const withdraw = announceSandbox({ ...announcement(), base_url: 'https://127.0.0.1:9' });
    const { code, of } = await doctor('--port', '0');
    withdraw();
    expect([code, of('sandbox')]).toEqual([
      1,
      {
        name: 'sandbox',
        state: 'fault',
        text: 'https://127.0.0.1:9 does not respond',
        advice: `end process ${process.pid} and start the sandbox again`,
      },
    ]);
  });

  test('custos doctor checks the data folder, its schema and the authority in it', async () => {
    const data = join(folder, 'data');
    const first = await startSandbox({ dataFolder: data });
    await first[Symbol.asyncDispose]();
    const good = await doctor('--port', '0', '--data', data);
    expect(good.of('data folder')).toMatchObject({
      text: expect.stringMatching(/is writable, \d+ MB are free/),
    });
    expect(good.of('schema')).toMatchObject({ state: 'ok' });
    writeFileSync(join(data, 'ca.pem'), 'nothing');
    rmSync(join(data, 'custos.sqlite-wal'), { force: true });
    writeFileSync(
      join(data, 'custos.sqlite'),
      'no database at all, but long enough to be read as one'.repeat(9),
    );
    const bad = await doctor('--port', '0', '--data', data);
    expect(bad.code).toBe(1);
    expect(bad.of('certificate')).toMatchObject({ state: 'fault' });
    expect(bad.of('schema')).toMatchObject({ state: 'fault', advice: expect.stringContaining('backup') });
  });

  test('warns of a proxy', async () => {
    const before = { HTTPS_PROXY: process.env.HTTPS_PROXY, NO_PROXY: process.env.NO_PROXY };
    restore({ HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: undefined });
    const { of } = await doctor('--port', '0');
    restore({ NO_PROXY: 'localhost,127.0.0.1' });
    const exempt = await doctor('--port', '0');
    restore(before);
    expect(of('proxy')).toMatchObject({ state: 'warning', text: 'HTTPS_PROXY is set' });
    expect(exempt.of('proxy')).toMatchObject({ state: 'ok' });
  });
});

describe('custos completion', () => {
  const complete = async (...words: string[]): Promise<string[]> => {
    const { stdout } = await runCommand(['complete', '--', ...words]);
    // The last line is a directive for the script.
    return stdout
      .split('\n')
      .slice(0, -2)
      .map((line) => line.split('\t')[0]!);
  };

  test('completes commands, operations, options and their values', async () => {
    expect(await complete('ev')).toEqual(['events']);
    expect(await complete('events', 'w')).toEqual(['wait']);
    expect(await complete('call', 'walletR')).toEqual(['walletRpc']);
    expect(await complete('call', 'walletRpc', '--sign', 'a')).toEqual(['alice']);
    expect(await complete('env', '--format', '')).toEqual(['shell', 'dotenv', 'json', 'github']);
    expect(await complete('events', 'wait', '--time')).toEqual(['--timeout']);
    expect(await complete('mock', '--app')).toEqual([]);
    expect(await complete('')).not.toContain('complete');
  });

  test.each(['bash', 'zsh', 'fish'])('%s reads its script without a complaint', async (shell) => {
    const { code, stdout } = await runCommand(['completion', shell]);
    expect(code).toBe(0);
    expect(stdout).toContain('complete --');
    if (spawnSync(shell, ['-c', 'true']).error !== undefined) return;
    const file = join(folder, `custos.${shell}`);
    writeFileSync(file, stdout);
    expect(spawnSync(shell, ['-n', file], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  });
});
