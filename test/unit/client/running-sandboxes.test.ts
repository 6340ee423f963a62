import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { announceSandbox, findRunningSandbox } from '../../../src/tools/client/running-sandboxes.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-running-'));
  vi.stubEnv('TMPDIR', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const sandbox = {
  ...{ base_url: 'https://127.0.0.1:4711', app_id: 'app', app_secret: 'secret', prefix: 'service' },
  ...{ version: '1.0.0', ca_file: '/ca.pem', data: null },
};

function announced(): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return join(folder, names.find((name) => name.endsWith('4711.json'))!);
}

test('a sandbox is found while its process runs, and until it is withdrawn', () => {
  const withdraw = announceSandbox(sandbox);
  expect(findRunningSandbox(undefined)).toMatchObject({ ...sandbox, pid: process.pid });
  withdraw();
  expect(findRunningSandbox(undefined)).toBeUndefined();
});

test('a sandbox of a folder above is found before the one on the default port', () => {
  announceSandbox({ ...sandbox, base_url: 'https://127.0.0.1:4010' });
  announceSandbox(sandbox);
  const file = announced();
  const started = (startedIn: string) => ({
    ...sandbox,
    ...JSON.parse(readFileSync(file, 'utf8')),
    started_in: startedIn,
  });
  for (const [port, startedIn] of [
    ['4010', '/elsewhere'],
    ['4711', dirname(process.cwd())],
  ] as const) {
    const written = { ...started(startedIn), base_url: `https://127.0.0.1:${port}` };
    writeFileSync(file.replace('4711', port), JSON.stringify(written));
  }
  expect(findRunningSandbox(undefined)?.base_url).toBe('https://127.0.0.1:4711');
});

test.runIf(process.platform === 'linux')('the id of its process belongs to another process now', () => {
  announceSandbox(sandbox);
  const killed = { ...JSON.parse(readFileSync(announced(), 'utf8')), pid: process.ppid };
  writeFileSync(announced(), JSON.stringify(killed));
  expect(findRunningSandbox(undefined)).toBeUndefined();
});

test.runIf(process.platform === 'linux')(
  'what killed sandboxes left is removed when another one starts',
  () => {
    announceSandbox(sandbox);
    const left = { ...JSON.parse(readFileSync(announced(), 'utf8')), pid: process.ppid };
    const file = announced().replace('4711', '4712');
    writeFileSync(file, JSON.stringify(left));
    announceSandbox(sandbox);
    expect(existsSync(file)).toBe(false);
    expect(existsSync(announced())).toBe(true);
  },
);
