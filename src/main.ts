import { runCommandLine } from './cli/program.ts';

// A closed pipe is not an error: `custos listen --help | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
const code = await runCommandLine(process.argv.slice(2));
// Keeps an exit code that the command set itself.
if (code !== 0) process.exitCode = code;
