import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
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

test('readable lines show any value, without what is absent, of the levels that are wanted', async () => {
  const text = await printed(
    'text',
    'warn',
    `const knot = { count: 5n }; knot.self = knot;
     log.info({}, 'not reported');
     log.warn({ list: [1, { of: 'two' }], absent: undefined, knot }, 'reported');`,
  );
  expect(text).toMatch(
    /^\d\d:\d\d:\d\d warn {2}reported list=\[1,\{"of":"two"\}\] knot=\{"count":5,"self":"\[Circular\]"\}\n$/,
  );
});

test('a JSON line may contain what JSON cannot', async () => {
  const line = await printed(
    'json',
    'info',
    `const knot = {}; knot.self = knot;
     log.info({ knot, count: 5n, err: new Error('failed'), many: Array(1000).fill(1) }, 'odd');`,
  );
  expect(line.length).toBeLessThan(1_500);
  expect(JSON.parse(line)).toMatchObject({
    ...{ level: 'info', msg: 'odd', count: 5, knot: { self: '[Circular]' } },
    err: { type: 'Error', message: 'failed', stack: expect.stringContaining('failed') },
  });
});

test.each(['json', 'text'] as const)(
  'a field that cannot be read costs the fields, not the program: %s',
  async (format) => {
    const text = await printed(
      format,
      'info',
      `log.warn({ odd: { toJSON() { throw new Error('unreadable'); } } }, 'kept');
     log.warn({ get odd() { throw new Error('unreadable'); } }, 'kept as well');`,
    );
    expect(text.trimEnd().split('\n')).toEqual([
      expect.stringContaining('kept'),
      expect.stringContaining('kept as well'),
    ]);
  },
);

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

test('lines are written within 20 ms, so a process that is killed later has lost none', async () => {
  const killed = await printed(
    'json',
    'info',
    `log.info({}, 'first'); log.info({}, 'second'); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 200);`,
  ).catch((error: { stdout: string }) => error.stdout);
  const lines = killed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).msg);
  expect(lines).toEqual(['first', 'second']);
});

test('lines that no program reads take 16 MiB, and the program goes on', async () => {
  const program = `import { makeLog } from '${log}';
    const log = makeLog({ level: 'info', format: 'json', descriptor: 1 });
    const line = 'x'.repeat(64 * 1024);
    for (let count = 0; count < 512; count += 1) log.info({}, line);
    process.send('logged');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  child.disconnect();
  let read = 0;
  for await (const chunk of child.stdout!) read += (chunk as Buffer).length;
  expect(read).toBeGreaterThan(15 * 1024 ** 2);
  expect(read).toBeLessThan(18 * 1024 ** 2);
});

test('fields of an error are redacted, and the logged objects stay as they are', async () => {
  const lines = await printed(
    'json',
    'info',
    `const fields = { err: Object.assign(new Error('refused'), { token: 'hidden' }), inner: { secret: 'shown' } };
     log.error(fields, 'failed');
     log.info({ text: fields.inner.secret, list: [fields.err.token.length] }, 'unchanged');`,
  );
  const [failed, unchanged] = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(failed).toMatchObject({
    err: { token: '[removed]', message: 'refused' },
    inner: { secret: '[removed]' },
  });
  expect(unchanged).toMatchObject({ text: 'shown', list: [6] });
});
