import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Combination, combinationsOf } from '../../src/tools/contract/contract-document.ts';
import { withoutGaps } from '../../src/tools/coverage/judge.ts';
import { readDocument } from './documented.ts';
import { figures, filesByCombination, gapsPath, judge, readGaps, readLedger } from './ledger.ts';

const HELP = `usage: npm run ledger [-- options] [name]

Shows what the tests exercise of the contract, as the runs so far have recorded it in coverage/ledger.json:
the figures, or for an operation, event or error code each combination with the test files that cover it.

  --gaps         every combination that no run has exercised
  --prune        delete the lines of test/house/uncovered.txt that are exercised
  --help         this text

exit codes: 0 done, 1 nothing has that name, 2 wrong usage`;

const documented = combinationsOf(readDocument());
const ledger = readLedger();

function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { gaps: { type: 'boolean' }, prune: { type: 'boolean' }, help: { type: 'boolean' } },
  });
  if (values.help) return print([HELP]);
  if (values.prune) return prune();
  const [name] = positionals;
  const named = documented.filter((combination) => name === undefined || isAbout(combination, name));
  if (named.length === 0) {
    process.stderr.write(`the contract has no operation, event or error code \`${name}\`\n`);
    return 1;
  }
  if (name === undefined && !values.gaps) return print(figures(documented, ledger));
  return print(rows(named, values.gaps === true));
}

function isAbout({ name }: Combination, asked: string): boolean {
  return name.split(' ').includes(asked);
}

/** One line for each combination: the files that cover it, or why none does. */
function rows(named: readonly Combination[], isGapsOnly: boolean): string[] {
  const files = filesByCombination(documented, ledger);
  const reasons = new Map(readGaps().map(({ name, reason }) => [name, reason]));
  return named.flatMap(({ name }) => {
    const covering = files.get(name) ?? [];
    if (covering.length > 0) return isGapsOnly ? [] : [name, ...covering.map((file) => `  ${file}`)];
    const reason = reasons.get(name);
    return [`${name}  (${reason === undefined ? 'not exercised' : `gap: ${reason}`})`];
  });
}

function prune(): number {
  const { closed } = judge(documented, ledger, readGaps());
  writeFileSync(gapsPath, withoutGaps(readFileSync(gapsPath, 'utf8'), closed));
  return print([`${closed.length} lines deleted`]);
}

function print(lines: readonly string[]): number {
  process.stdout.write(`${lines.join('\n')}\n`);
  return 0;
}

try {
  process.exitCode = main();
} catch (error) {
  if (!(error instanceof Error) || !('code' in error) || !String(error.code).startsWith('ERR_PARSE_ARGS'))
    throw error;
  process.stderr.write(`${error.message}\n${HELP}\n`);
  process.exitCode = 2;
}
