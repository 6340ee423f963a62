import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

function generate(...flags: string[]): { status: number | null; out: string; err: string } {
  const program = join(import.meta.dirname, '../../../codegen/main.ts');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...flags], { encoding: 'utf8' });
  return { status, out: stdout, err: stderr };
}

test('--help lists the flags and the exit codes', () => {
  const { status, out } = generate('--help');
  expect(status).toBe(0);
  for (const word of ['--check', '--allow-todo', 'exit codes: 0 success']) expect(out).toContain(word);
});

test('an unknown flag is wrong usage, and nothing is generated', () => {
  const { status, out, err } = generate('--force');
  expect(status).toBe(2);
  expect(out).toBe('');
  expect(err).toContain("Unknown option '--force'");
});
