import { runCommandLine } from './cli/program.ts';

// A closed pipe is not an error: `custos listen --help | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
// No `await` here: the program is published as a script.
void runCommandLine(process.argv.slice(2)).then((code) => {
  // Keeps an exit code that the command set itself.
  if (code !== 0) process.exitCode = code;
});
