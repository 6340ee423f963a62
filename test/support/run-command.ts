import { format } from 'node:util';
import { runCommandLine } from '../../src/cli/program.ts';
import type { Finished } from './run-custos.ts';

let isRunning = false;

/**
 * Runs a command to its end in this process. As `runCustos`, without the time in which a process starts; for commands
 * that end by themselves, one at a time.
 */
export async function runCommand(
  args: readonly string[],
  { env = {} }: { readonly env?: Record<string, string> } = {},
): Promise<Finished> {
  if (isRunning) throw new Error('expected one command at a time in this process');
  isRunning = true;
  const before = { env: settingsIn(process.env), exitCode: process.exitCode };
  const [out, err] = [capture(process.stdout, 'log'), capture(process.stderr, 'error')];
  try {
    replaceSettings(env);
    process.exitCode = undefined;
    const code = await runCommandLine(args);
    return { code: Number(process.exitCode ?? code), stdout: out.text(), stderr: err.text() };
  } finally {
    out.restore();
    err.restore();
    replaceSettings(before.env);
    process.exitCode = before.exitCode;
    isRunning = false;
  }
}

function settingsIn(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[0].startsWith('CUSTOS_') || entry[0] === 'DATABASE_URL',
    ),
  );
}

function replaceSettings(settings: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(settingsIn(process.env))) delete process.env[name];
  Object.assign(process.env, settings);
}

/** Keeps what is written to a stream, and to the console that belongs to it. */
function capture(stream: NodeJS.WriteStream, method: 'log' | 'error') {
  const { console: printer } = globalThis;
  const chunks: string[] = [];
  const before = { write: stream.write, print: printer[method] };
  stream.write = ((chunk: string | Uint8Array) => {
    chunks.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    return true;
  }) as typeof stream.write;
  printer[method] = (...values: unknown[]) => void chunks.push(`${format(...values)}\n`);
  return {
    text: () => chunks.join(''),
    restore() {
      stream.write = before.write;
      printer[method] = before.print;
    },
  };
}
