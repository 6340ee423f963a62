import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';

// Real processes, because exits and descriptors are what can go wrong. `/dev/full` is a disk without room; a named
// pipe is a reader that ends, is stuck and comes back.

const log = join(import.meta.dirname, '..', '..', '..', 'src', 'adapters', 'log.ts');
const folder = mkdtempSync(join(tmpdir(), 'custos-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A program that logs a line for each message that it is sent, and ends as the test says. */
const program = (format: 'json' | 'text', end: string): string => `
  import { droppedLogLines, makeLog } from '${log}';
  const log = makeLog({ level: 'info', format: '${format}', descriptor: 1 });
  process.on('message', (count) => {
    if (count === 0) { process.channel.unref(); ${end}; return; }
    for (let at = 0; at < count; at += 1) log.info({ at }, 'line '.repeat(20));
    setTimeout(() => process.send(droppedLogLines()), 60);
  });`;

function start(output: number | 'pipe', { format = 'json' as 'json' | 'text', end = '' } = {}): ChildProcess {
  return spawn(process.execPath, ['--input-type=module', '-e', program(format, end)], {
    stdio: ['ignore', output, 'inherit', 'ipc'],
  });
}

/** Has lines logged, and returns how many were dropped since the start. */
async function log100(child: ChildProcess, lines = 100): Promise<number> {
  const answer = once(child, 'message');
  child.send(lines);
  return (await answer)[0] as number;
}

/** The exit code, or `hung`. */
async function endOf(child: ChildProcess): Promise<number | null | 'hung'> {
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  child.send(0);
  const code = await Promise.race([exit, pause(60_000, 'hung' as const, { ref: false })]);
  if (code === 'hung') child.kill('SIGKILL');
  return code;
}

async function namedPipe(name: string): Promise<string> {
  const path = join(folder, name);
  await promisify(execFile)('mkfifo', [path]);
  return path;
}

/** What is in the pipe now. */
function takeAll(reader: number): string {
  const chunk = Buffer.alloc(1024 * 1024);
  let text = '';
  for (;;) {
    try {
      const length = readSync(reader, chunk);
      if (length === 0) return text;
      text += chunk.toString('utf8', 0, length);
    } catch {
      return text;
    }
  }
}

const ways = [
  ['json', ''],
  ['text', ''],
  ['json', 'process.exit(0)'],
] as const;

test.concurrent.each(ways)(
  'on a full disk, lines are dropped and counted, and the process ends (%s %s)',
  async (format, end) => {
    const full = openSync('/dev/full', 'w');
    const child = start(full, { format, end });
    closeSync(full);
    expect(await log100(child)).toBe(100);
    expect(await log100(child)).toBe(200);
    expect(await endOf(child)).toBe(0);
  },
);

test.concurrent('without a reader, lines are dropped and counted; a new reader first gets the count', async () => {
  const path = await namedPipe('comes-back');
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, 'w');
  const child = start(writer);
  closeSync(writer);
  expect(await log100(child, 3)).toBe(0);
  expect(takeAll(first).split('\n')).toHaveLength(3 + 1);
  closeSync(first);
  expect(await log100(child, 7)).toBe(7);
  const second = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  let text = '';
  for (let round = 0; round < 600 && text === ''; round += 1) {
    await pause(50);
    text = takeAll(second);
  }
  expect(JSON.parse(text)).toMatchObject({
    level: 'warn',
    lines: 7,
    msg: 'lines of the log were dropped, because they could not be written',
  });
  expect(await log100(child, 1)).toBe(7);
  expect(JSON.parse(takeAll(second))).toMatchObject({ level: 'info', at: 0 });
  expect(await endOf(child)).toBe(0);
  closeSync(second);
});

test.concurrent.each(['', 'process.exit(0)'])(
  'a reader that is stuck keeps no process from ending (%s)',
  async (end) => {
    const child = start('pipe', { end });
    child.stdout!.pause();
    expect(await log100(child, 20_000)).toBe(0);
    expect(await endOf(child)).toBe(0);
  },
);

test.concurrent('the last lines reach a reader that is slow', async () => {
  const child = start('pipe', { end: "log.info({}, 'last')" });
  await log100(child, 20_000);
  let text = '';
  child.send(0);
  await pause(200);
  for await (const chunk of child.stdout!) text += chunk;
  const lines = text.trimEnd().split('\n');
  expect(lines).toHaveLength(20_001);
  expect(JSON.parse(lines.at(-1)!).msg).toBe('last');
});
