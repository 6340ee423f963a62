import { runCommandLine } from './cli/program.ts';

// Whoever reads the output may have read enough: `custos listen --help | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
const code = await runCommandLine(process.argv.slice(2));
// A command may have chosen its own.
if (code !== 0) process.exitCode = code;
