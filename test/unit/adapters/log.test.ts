import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const log = join(import.meta.dirname, '..', '..', '..', 'src', 'adapters', 'log.ts');

/** Standard output of a program that logs. */
async function printed(format: 'json' | 'text', level: string, statements: string): Promise<string> {
  const program = `import { makeLog } from '${log}';
    const log = makeLog({ level: '${level}', format: '${format}', descriptor: 1 });
    ${statements}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  return stdout;
}

test('JSON lines contain level, time, text and fields', async () => {
  const lines = await printed(
    'json',
    'info',
    `log.debug({}, 'not reported'); log.warn({ status: 3 }, 'reported');`,
  );
  expect(JSON.parse(lines)).toEqual({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    status: 3,
    msg: 'reported',
  });
});

test('readable lines contain the same, and the stack of an error with its causes', async () => {
  const text = await printed(
    'text',
    'info',
    `log.info({ operation: 'getWallet', status: 200 }, 'request');
     log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');`,
  );
  expect(text).toMatch(/^\d\d:\d\d:\d\d info {2}request operation=getWallet status=200\n/);
  expect(text).toMatch(/error failed\nError: outer[\s\S]+caused by: Error: inner/);
});

test.each(['json', 'text'] as const)('fields named like a secret are redacted: %s', async (format) => {
  const text = await printed(
    format,
    'info',
    `log.info({ app_secret: 'hidden', request: { authorization: 'hidden', private_key: 'hidden' },
                headers: { 'service-authorization-signature': 'hidden' } }, 'request');`,
  );
  expect(text).not.toContain('hidden');
  expect(text).toContain('[removed]');
});
