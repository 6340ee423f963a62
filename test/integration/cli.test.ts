import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { programName } from '../../src/config/client.ts';
import { runCommand, runCustos, serveCustos, startCustos, temporaryFolder } from '../support/run-custos.ts';
import { startSandbox } from '../support/sandbox.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

const commands = [
  [],
  ['sandbox'],
  ['mock'],
  ['serve'],
  ['migrate'],
  ['apps'],
  ['apps', 'create'],
  ['apps', 'list'],
  ['apps', 'rotate-secret'],
  ['sig', 'explain'],
  ['keys'],
  ['keys', 'rotate'],
];

test.each(commands)('%s %s --help shows examples and exits with 0', async (...command) => {
  const { code, stdout, stderr } = await runCommand([
    ...command.filter((word) => word !== undefined),
    '--help',
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^Usage: custos/);
  expect(stdout).toMatch(/\nExamples?:\n/);
  expect(stdout).toContain('-h, --help');
});

test('the help of every command fits into 80 columns', async () => {
  const commandsIn = (help: string): string[] => {
    const isOfCommands = (part: string): boolean => !/^(Usage|Arguments|Options|Examples?)\b/.test(part);
    const lists = help
      .split('\n\n')
      .filter((part) => /^[A-Z][^\n]*:\n {2}\S/.test(part) && isOfCommands(part));
    return [...lists.join('\n').matchAll(/^ {2}([a-z][a-z-]*) {2}/gm)]
      .map(([, name = '']) => name)
      .filter((name) => name !== 'help');
  };
  const paths: string[][] = [[]];
  const wide: string[] = [];
  for (const path of paths) {
    const { stdout } = await runCommand([...path, '--help']);
    // The help of a command without subcommands also has groups, whose entries are not commands.
    if (!stdout.startsWith(`Usage: ${['custos', ...path].join(' ')} `)) continue;
    paths.push(...commandsIn(stdout).map((name) => [...path, name]));
    wide.push(...stdout.split('\n').filter((line) => line.length > 80 && !isOneWord(line)));
  }
  expect(paths.length).toBeGreaterThan(30);
  expect(wide).toEqual([]);
});

/** A URL or JSON that cannot be broken. */
function isOneWord(line: string): boolean {
  return line.trim().split(' ').length <= 2;
}

test('closing the pipe while help is printed is not a failure', async () => {
  const custos = await startCustos(['listen', '--help']);
  custos.process.stdout!.destroy();
  expect(await custos.ended()).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('--version prints the version', async () => {
  const { code, stdout } = await runCustos(['--version']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('custos alone shows the running sandboxes, and the next commands', async () => {
  await using custos = await serveCustos(['sandbox']);
  const { code, stdout, stderr } = await runCustos([]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(custos.ready.base_url);
  expect(stdout).toContain('$ custos logs ');
});

test('commands begin with npx if the program is installed in a project', () => {
  expect(programName('/shop/node_modules/.bin/custos')).toBe('npx custos');
  expect(programName('/usr/local/bin/custos')).toBe('custos');
});

test('an unknown command is wrong usage', async () => {
  const unknown = await runCustos(['sandbocks']);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain("unknown command 'sandbocks'");
  expect(unknown.stderr).toContain('sandbox');
  const option = await runCustos(['sandbox', '--poort', '1']);
  expect(option.code).toBe(2);
  expect(option.stderr).toContain("unknown option '--poort'");
});

test('all invalid options are reported at once', async () => {
  const { code, stdout, stderr } = await runCommand([
    ...['sandbox', '--port', '70000', '--prefix', 'Acme!', '--rate-limit', 'fast', '--app-secret', 'short'],
    ...['--public-url', 'ftp://acme.example', '--jwt-key', '/nowhere/key.pem', '--log-level', 'loud'],
  ]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe(
    [
      'custos: invalid options:',
      '  - --port: expected a whole number from 0 to 65535, got `70000`',
      '  - --prefix: expected a lower-case word of at most 32 letters and digits, got `Acme!`',
      '  - --public-url: expected an http(s) URL without a query, got `ftp://acme.example`',
      '  - --rate-limit: expected a whole number from 0 to 1000000, got `fast`',
      '  - --log-level: expected one of debug, info, warn, error, silent, got `loud`',
      '  - --app-secret: expected 8 to 256 printable ASCII characters without spaces',
      '  - --jwt-key: cannot read `/nowhere/key.pem` (ENOENT)',
      '',
    ].join('\n'),
  );
});

test('serve reports all missing settings at once', async () => {
  const { code, stderr } = await runCommand(['serve']);
  expect(code).toBe(2);
  const faults = stderr.split('\n').filter((line) => line.startsWith('  - '));
  expect(faults.map((fault) => fault.split(' ')[3])).toEqual([
    'DATABASE_URL',
    'CUSTOS_TLS_CERT',
    'CUSTOS_MASTER_KEY,',
    'CUSTOS_PUBLIC_URLS',
  ]);
});

test('serve refuses a seed, as an option and in the environment', async () => {
  const text = 'a seed makes keys and ids predictable and is only supported by';
  const option = await runCommand(['serve', '--seed', 'demo']);
  expect(option.code).toBe(2);
  expect(option.stderr).toContain(text);
  const variable = await runCommand(['serve'], { env: { CUSTOS_SEED: 'demo' } });
  expect(variable.code).toBe(2);
  expect(variable.stderr).toContain(text);
});

test('an unreachable database is reported in plain words', async () => {
  const env = { DATABASE_URL: 'postgresql://unknown@127.0.0.1:1/nothing' };
  const { code, stderr } = await runCommand(['migrate'], { env });
  expect(code).toBe(1);
  expect(stderr).toContain('the database cannot be reached: connect ECONNREFUSED 127.0.0.1:1');
  const { code: withoutUrl, stderr: advice } = await runCommand(['migrate']);
  expect(withoutUrl).toBe(2);
  expect(advice).toContain('DATABASE_URL is missing');
});

test('apps of a folder without a sandbox', async () => {
  const { code, stderr } = await runCommand(['apps', 'list', '--data', '/nowhere']);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'custos: expected the data folder of a sandbox, got `/nowhere`\n',
  });
});

test('a ready file in a folder that does not exist is refused with the reason', async () => {
  const file = join(folder, 'absent', 'ready.json');
  const { code, stderr } = await runCommand(['mock', '--port', '0', '--quiet', '--ready-file', file]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `custos: --ready-file: \`${file}\` cannot be written: its folder does not exist; create it\n`,
  });
});

test('a file that is not a database is reported with what to do, without a stack trace', async () => {
  const started = await startSandbox({ dataFolder: folder });
  await started[Symbol.asyncDispose]();
  for (const file of ['custos.sqlite-wal', 'custos.sqlite-shm']) rmSync(join(folder, file), { force: true });
  writeFileSync(join(folder, 'custos.sqlite'), 'no database at all, but long enough to be read'.repeat(9));
  const { code, stderr } = await runCommand(['apps', 'list', '--data', folder]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^custos: the database cannot be used: .*; restore it from a backup\n$/);
});
