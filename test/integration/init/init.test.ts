import { spawn, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCommand, runCustos } from '../../support/run-custos.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const templates = join(root, 'templates');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-init-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const init = (...args: string[]) => runCommand(['init', '--into', folder, ...args]);
const written = () =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

describe('custos init', () => {
  test('custos init lists its templates, and writes each of them with what to do next', async () => {
    const { stdout: list } = await init('--list');
    const names = list
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[0]!);
    expect(readdirSync(templates).filter((name) => !names.includes(name))).toEqual([]);
    const { code, stdout } = await init(...names);
    expect(code).toBe(0);
    for (const name of names) expect(stdout).toContain(`next for ${name}:\n  `);
    expect(written()).toEqual([
      '.github/workflows/custos.yml',
      'app/api/webhooks/custos/route.ts',
      'custos.http',
      'custos.postman_collection.json',
      'custostest/custostest.go',
      'custostest/custostest_test.go',
      'e2e/custos.spec.ts',
      'playwright.config.ts',
      'test/custos.test.cjs',
      'test/custos.test.mts',
      'tests/conftest.py',
      'tests/test_custos.py',
      'webhooks/express.mts',
      'webhooks/fastify.mts',
    ]);
    // The tests below, and this one's neighbours in `templates/`, run the templates where they are.
    for (const file of ['test/custos.test.mts', 'e2e/custos.spec.ts']) {
      const name = file.startsWith('e2e') ? 'playwright' : 'vitest';
      expect(readFileSync(join(folder, file), 'utf8')).toBe(
        readFileSync(join(templates, name, file), 'utf8'),
      );
    }
  });

  test('custos init writes nothing if a file is in the way, unless it is forced', async () => {
    expect((await init('vitest')).code).toBe(0);
    const file = join(folder, 'test', 'custos.test.mts');
    const text = readFileSync(file, 'utf8');
    expect((await init('vitest')).stdout).toContain('unchanged  test/custos.test.mts');
    writeFileSync(file, 'mine');
    const refused = await init('github', 'vitest');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('`test/custos.test.mts` would be overwritten');
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(written()).toEqual(['test/custos.test.mts']);
    expect((await init('github', 'vitest', '--force')).stdout).toContain('replaced   test/custos.test.mts');
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  test('custos init refuses templates that it does not have', async () => {
    expect(await init('mocha', 'vitest')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected templates of vitest, jest, '),
    });
    expect((await init()).stderr).toContain('got none');
    expect(written()).toEqual([]);
  });
});

test.each(['express', 'fastify'])(
  'the endpoint of %s runs in a new project, which npm makes CommonJS',
  async (name) => {
    const { stdout } = await init(name);
    expect(stdout).toContain(`npx node webhooks/${name}.mts`);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'commonjs' }));
    mkdirSync(join(folder, 'node_modules', 'fastify'), { recursive: true });
    for (const each of ['express', 'standardwebhooks'])
      symlinkSync(join(root, 'node_modules', each), join(folder, 'node_modules', each));
    // Fastify is no dependency of ours: the stub has what the template calls.
    const stub = 'module.exports = () => ({ register: async () => {}, listen: async () => {} });';
    writeFileSync(join(folder, 'node_modules', 'fastify', 'index.js'), stub);
    const secret = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
    const child = spawn(process.execPath, [`webhooks/${name}.mts`], {
      cwd: folder,
      env: { ...process.env, WEBHOOK_SECRET: secret, PORT: '0' },
    });
    let output = '';
    const isOver = new Promise((resolve) => child.once('exit', resolve));
    const listens = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString();
          if (output.includes('listens on')) resolve();
        });
    });
    await Promise.race([listens, isOver]);
    child.kill();
    expect(output).toContain('listens on http://127.0.0.1:0/webhooks/custos');
  },
);

test.each([
  ['pytest', ['python3', '-m', 'pytest', '-q', 'tests/test_custos.py'], 'import pytest', '3 passed'],
  ['go', ['go', 'test', './custostest/'], undefined, 'ok '],
] as const)(
  'the tests of the template %s pass where its runtime is installed',
  async (name, words, module, passed) => {
    const [program, ...args] = words;
    const known = spawnSync(program, module === undefined ? ['version'] : ['-c', module]);
    if (known.status !== 0) return void process.stderr.write(`${name} did not run: it is not installed\n`);
    await init(name);
    writeFileSync(join(folder, 'go.mod'), 'module example.com/shop\n\ngo 1.22\n');
    // The bundle must exist before it is started.
    await runCustos(['--version']);
    const command = `${process.execPath} ${join(root, 'dist', 'custos.js')}`;
    const env = { ...process.env, CUSTOS_COMMAND: command, PYTHONDONTWRITEBYTECODE: '1' };
    const { stdout, stderr } = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8' });
    expect(`${stdout}${stderr}`).toContain(passed);
  },
);

test('the template go kills a sandbox that does not end', async () => {
  if (spawnSync('go', ['version']).status !== 0)
    return void process.stderr.write('go did not run: it is not installed\n');
  await init('go');
  writeFileSync(join(folder, 'go.mod'), 'module example.com/shop\n\ngo 1.22\n');
  rmSync(join(folder, 'custostest', 'custostest_test.go'));
  writeFileSync(
    join(folder, 'custostest', 'stop_test.go'),
    `package custostest\n\nimport "testing"\n\nfunc TestStop(t *testing.T) { t.Log(Start(t).PID) }\n`,
  );
  const stubborn = `
    const { writeFileSync } = require('node:fs');
    process.on('SIGTERM', () => undefined);
    setInterval(() => undefined, 1000);
    const ready = { base_url: 'https://127.0.0.1:9', ca_file: __filename, pid: process.pid };
    writeFileSync(process.argv.at(-1), JSON.stringify(ready));`;
  writeFileSync(join(folder, 'stubborn.cjs'), stubborn);
  const env = { ...process.env, CUSTOS_COMMAND: `${process.execPath} ${join(folder, 'stubborn.cjs')}` };
  const { stdout, stderr } = spawnSync('go', ['test', '-v', '-timeout', '40s', './custostest/'], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  expect(`${stdout}${stderr}`).toContain('did not end within 10s, and was killed');
  const pid = Number(/stop_test.go:\d+: (\d+)/.exec(stdout)?.[1]);
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
