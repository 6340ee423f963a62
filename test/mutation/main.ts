import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';

const folder = import.meta.dirname;
const root = join(folder, '..', '..');

/** What policies read calldata with. */
const calldataReader = 'src/engine/signing/ethereum/abi-values.ts';

const help = `
A mutant is src/engine/policy, or ${calldataReader}, with one small change: a comparison turned
round, a condition left out, a text emptied. A mutant that no test of theirs notices survives, and shows what could
break unseen. The tool (StrykerJS) is installed into test/mutation/node_modules at the first run. What was judged before
is not judged again unless it or its tests changed; the report of every mutant is reports/mutation/mutation.json.

Examples:
  $ npm run mutation                                     the whole engine; about an hour on two cores
  $ npm run mutation -- src/engine/policy/operators.ts          one file; minutes
  $ npm run mutation -- --afresh                         nothing taken over from former runs

Exit codes: 0 at least 90 % of the mutants were noticed; 1 fewer, or failed; 2 called wrongly.`;

interface Flags {
  readonly afresh?: true;
  readonly jobs: string;
}

function readCall(args: readonly string[]): { files: readonly string[]; flags: Flags } {
  const program = new Command('mutation')
    .description(
      'How many small changes of the policy engine its tests notice: the mutation score of src/engine/policy.',
    )
    .argument('[files...]', 'only these files of src/engine/policy')
    .helpOption('-h, --help', 'print this help')
    .option('--afresh', 'judge every mutant, whatever former runs found')
    .option('--jobs <count>', 'how many mutants are judged at a time', '2')
    .addHelpText('after', help)
    .showHelpAfterError('(see --help)')
    .exitOverride();
  program.parse(args, { from: 'user' });
  const files = program.args;
  for (const file of files) {
    if (!(file.startsWith('src/engine/policy/') || file === calldataReader) || !existsSync(join(root, file)))
      program.error(`error: \`${file}\` is no file of src/engine/policy, nor ${calldataReader}`, {
        exitCode: 2,
      });
  }
  const flags = program.opts<Flags>();
  if (!/^[1-9][0-9]?$/.test(flags.jobs))
    program.error('error: --jobs is a number from 1 to 99', { exitCode: 2 });
  return { files, flags };
}

function isInstalled(): boolean {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.entries(dependencies as Record<string, string>).every(([name, version]) => {
    const path = join(folder, 'node_modules', name, 'package.json');
    return existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).version === version;
  });
}

/** The exit code; what the program says goes where ours goes. */
function run(program: string, args: readonly string[]): Promise<number> {
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

async function main(): Promise<number> {
  const { files, flags } = readCall(process.argv.slice(2));
  if (!isInstalled()) {
    // By the lockfile, without running any script of a package.
    const code = await run('npm', ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']);
    if (code !== 0) return 1;
  }
  return run(process.execPath, [
    join(folder, 'node_modules/@stryker-mutator/core/bin/stryker.js'),
    'run',
    'test/mutation/stryker.config.json',
    ...(files.length === 0 ? [] : ['--mutate', files.join(',')]),
    ...(flags.afresh ? ['--force'] : []),
    ...['--concurrency', flags.jobs],
  ]);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? 0 : 2;
}
