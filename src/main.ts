import { runCommandLine } from './cli/program.ts';

const code = await runCommandLine(process.argv.slice(2));
// A command may have chosen its own.
if (code !== 0) process.exitCode = code;
