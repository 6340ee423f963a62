import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath } from '../../support/inspector/browser.ts';

// Each template as a user has it: in a folder with the packed tarball and what the template needs, installed from the
// registry or the cache of npm.
const root = join(import.meta.dirname, '..', '..', '..');
const secret = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
let folder: string;

const run = (command: string, args: string[], env: Record<string, string> = {}) => {
  const { status, stdout, stderr } = spawnSync(command, args, {
    ...{ cwd: folder, encoding: 'utf8', timeout: 600_000 },
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1', ...env },
  });
  return { status, output: `${stdout}${stderr}` };
};
const bin = (name: string) => join(folder, 'node_modules', '.bin', name);

describe.runIf(process.env.TEST_LONG === '1')('in a project of a user', { timeout: 180_000 }, () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'custos-templates-'));
    expect(spawnSync('npm', ['pack', '--pack-destination', folder], { cwd: root }).status).toBe(0);
    const scripts = { test: 'vitest run test/custos.test.mts' };
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', scripts }));
    const packages = [
      'jest@30',
      '@playwright/test',
      'fastify',
      'standardwebhooks',
      'typescript',
      '@types/node@24',
    ];
    const custos = join(folder, 'custos-0.1.0.tgz');
    const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies;
    const shared = ['vitest', 'express', '@types/express'].map((name) => `${name}@${own[name]}`);
    const installed = run('npm', ['install', '--no-audit', '--no-fund', custos, ...packages, ...shared], {
      // Proxies and certificate authorities of this machine.
      ...(process.env as Record<string, string>),
      PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1',
    });
    expect(installed).toMatchObject({ status: 0 });
    const all = ['vitest', 'jest', 'playwright', 'express', 'fastify', 'next', 'github'];
    expect(run(bin('custos'), ['init', ...all])).toMatchObject({ status: 0 });
  }, 900_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  test('the tests of the vitest template pass', () => {
    const { status, output } = run(bin('vitest'), ['run', 'test/custos.test.mts']);
    expect(output).toContain('3 passed');
    expect(status).toBe(0);
  });

  test('the tests of the jest template pass', () => {
    const { status, output } = run(bin('jest'), ['test/custos.test.cjs']);
    expect(output).toContain('3 passed, 3 total');
    expect(status).toBe(0);
  });

  test.runIf(browserPath !== undefined)('the tests of the Playwright template pass', () => {
    const { status, output } = run(bin('playwright'), ['test'], { CHROMIUM_PATH: browserPath! });
    expect(output).toContain('2 passed');
    expect(status).toBe(0);
  });

  describe('the reporter of two workers', () => {
    const reporter = (json: string, errors: number) =>
      `['custos/testing/reporter', { reports: { json: '${json}' }, failUnder: { errors: ${errors} } }]`;
    const inJest = (errors: number) => `module.exports = {
      testEnvironment: 'custos/testing/jest', testMatch: ['<rootDir>/reported/*.cjs'], maxWorkers: 2,
      reporters: ['default', ${reporter('jest.json', errors)}],
    };`;
    const inPlaywright = (errors: number) => `import { defineConfig } from '@playwright/test';
    export default defineConfig({ testDir: 'reported', workers: 2, fullyParallel: true,
      reporter: [['line'], ${reporter('playwright.json', errors)}],
    });`;
    const fixtures = `import { test as base } from '@playwright/test';
    import { sandboxFixtures } from 'custos/testing/fixtures';
    const test = base.extend(sandboxFixtures());`;
    const inEach = {
      one: `await sandbox.call('createWallet', { body: { chain_type: 'solana' } });`,
      two: `await sandbox.attempt('getWallet', { path: { wallet_id: 'ext_wal_nobody' } });
        if (process.env.TEST_FAILS) throw new Error('as planned');`,
    };
    beforeAll(() => {
      mkdirSync(join(folder, 'reported'));
      for (const [name, code] of Object.entries(inEach)) {
        const jest = `const { sandbox } = globalThis; test('${name}', async () => { ${code} });`;
        const playwright = `${fixtures} test('${name}', async ({ sandbox }) => { ${code} });`;
        writeFileSync(join(folder, `reported/${name}.cjs`), jest);
        writeFileSync(join(folder, `reported/${name}.spec.ts`), playwright);
      }
    });

    test.each([
      ['jest', 'jest.reported.config.cjs', inJest, []],
      ['playwright', 'playwright.reported.config.ts', inPlaywright, ['test']],
    ] as const)('in %s', (runner, config, settings, args) => {
      const runUnder = (errors: number, env: Record<string, string> = {}) => {
        writeFileSync(join(folder, config), settings(errors));
        const { status, output } = run(bin(runner), [...args, '--config', config], env);
        const measured = JSON.parse(readFileSync(join(folder, `${runner}.json`), 'utf8'));
        return { status, output, requests: measured.requests };
      };
      const tooFew = expect.stringContaining('error codes: expected at least 90 %');
      expect(runUnder(1)).toMatchObject({ status: 0, requests: 2 });
      expect(runUnder(90)).toMatchObject({ status: 1, requests: 2, output: tooFew });
      expect(runUnder(1, { TEST_FAILS: '1' })).toMatchObject({
        ...{ status: 1, requests: 2 },
        output: expect.stringContaining('as planned'),
      });
    });

    test('does nothing when Playwright lists tests', () => {
      const config = 'playwright.reported.config.ts';
      writeFileSync(join(folder, config), inPlaywright(90));
      const { status, output } = run(bin('playwright'), ['test', '--list', '--config', config]);
      expect({ status, isQuiet: !output.includes('custos: ') }).toEqual({ status: 0, isQuiet: true });
    });
  });

  test.each(['express', 'fastify'])('in a project of a user: %s', async (name) => {
    const port = String(name === 'express' ? 39_411 : 39_412);
    const server = spawn(process.execPath, [join('webhooks', `${name}.mts`)], {
      ...{ cwd: folder, env: { WEBHOOK_SECRET: secret, PORT: port } },
    });
    const printed = text(server.stdout);
    try {
      const body = JSON.stringify({ type: 'wallet.archived' });
      const now = new Date();
      const headers = {
        'content-type': 'application/json',
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': new Webhook(secret).sign('msg_1', now, body),
      };
      const url = `http://127.0.0.1:${port}/webhooks/custos`;
      const post = (sent: string) =>
        fetch(url, { method: 'POST', headers, body: sent }).then(({ status }) => status);
      let first: number | undefined;
      for (let tries = 0; first === undefined && tries < 100; tries += 1) {
        first = await post(body).catch(() => undefined);
        if (first === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect([first, await post(body), await post(`${body} `)]).toEqual([204, 204, 401]);
    } finally {
      const ended = once(server, 'exit');
      server.kill();
      await ended;
    }
    expect(await printed).toBe('wallet.archived\n');
  });

  test('the script of the CI workflow runs to its end', () => {
    const workflow = readFileSync(join(folder, '.github', 'workflows', 'custos.yml'), 'utf8');
    const [, script = ''] = /run: \|\n((?: {10}.*\n)+)/.exec(workflow) ?? [];
    expect(script).toContain('custos coverage');
    // The tests of the template start their own sandboxes, so nothing is measured.
    expect(run('bash', ['-e', '-o', 'pipefail', '-c', script])).toMatchObject({
      status: 0,
      output: expect.stringContaining('3 passed'),
    });
    const calls = JSON.stringify({
      private: true,
      type: 'module',
      scripts: { test: 'custos call createWallet chain_type=ethereum' },
    });
    writeFileSync(join(folder, 'package.json'), calls);
    expect(run('bash', ['-e', '-o', 'pipefail', '-c', script]).status).toBe(0);
    expect(existsSync(join(folder, 'coverage', 'custos.html'))).toBe(true);
  });

  test.each(['node16', 'bundler'])('types, with moduleResolution %s', (moduleResolution) => {
    const module = moduleResolution === 'node16' ? 'node16' : 'esnext';
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2024',
      lib: ['es2024', 'dom'],
      types: ['node'],
    };
    const files = [
      'test/custos.test.mts',
      'e2e/custos.spec.ts',
      'playwright.config.ts',
      'webhooks/express.mts',
      'webhooks/fastify.mts',
      'app/api/webhooks/custos/route.ts',
    ];
    // Libraries are checked as well, so that our declarations are complete.
    const settings = { compilerOptions: { ...compilerOptions, strict: true, noEmit: true }, files };
    const config = `tsconfig.${moduleResolution}.json`;
    writeFileSync(join(folder, config), JSON.stringify(settings));
    const { output } = run(bin('tsc'), ['-p', config]);
    // Declarations of other packages may need more than this project has.
    expect(output.split('\n').filter((line) => /^(?!node_modules\/(?!custos\/))\S+\(\d/.test(line))).toEqual(
      [],
    );
  });
});
