import { runCommandLine } from './cli/program.ts';

// A server keeps running if its output cannot be written. A command whose output is lost has failed. A closed pipe is
// not an error, as in `custos listen --help | head`.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') return;
  process.exitCode = 1;
  console.error(`custos: standard output cannot be written: ${code}`);
});
process.stderr.on('error', () => undefined);
// No `await` here: the program is published as a script.
void runCommandLine(process.argv.slice(2)).then((code) => {
  // Keeps an exit code that the command set itself.
  if (code !== 0) process.exitCode = code;
});
