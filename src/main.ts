import { runCommandLine } from './cli/program.ts';

// If standard output cannot be written, a server keeps running, and a command fails. A closed pipe is not an error, as
// in `custos listen --help | head`.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') return;
  process.exitCode = 1;
  console.error(`custos: standard output cannot be written: ${code}`);
});
process.stderr.on('error', () => undefined);
// The program is bundled as CommonJS, which has no top-level `await`.
void runCommandLine(process.argv.slice(2)).then((code) => {
  // Keeps an exit code that the command set itself.
  if (code !== 0) process.exitCode = code;
});
