import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCatalogue } from '../../src/generated/errors.ts';
import type { Combination } from '../../src/tools/contract/contract-document.ts';
import { type Gap, parseGaps } from '../../src/tools/coverage/judge.ts';
import { root } from './documented.ts';

/** What each test file has seen, as it was recorded. */
export type Ledger = Readonly<Record<string, readonly string[]>>;

export interface Judgement {
  /** Documented, not exercised, not in the list of gaps. */
  readonly unlisted: readonly string[];
  /** In the list of gaps although a test exercises them. */
  readonly closed: readonly string[];
  /** Answered by an operation whose document does not have them. */
  readonly undocumented: readonly string[];
}

const ledgerPath = join(root, 'coverage', 'ledger.json');
export const gapsPath = join(root, 'test', 'house', 'uncovered.txt');

/** What the processes of one run have written into `folder`. */
export function readRecords(folder: string): Ledger {
  const seen: Record<string, string[]> = {};
  for (const name of readdirSync(folder).filter((name) => name.endsWith('.tsv'))) {
    for (const line of readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1)) {
      const [file = '', combination = ''] = line.split('\t');
      seen[file] = [...(seen[file] ?? []), combination];
    }
  }
  return Object.fromEntries(
    Object.entries(seen).map(([file, combinations]) => [file, [...new Set(combinations)].sort()]),
  );
}

/** The ledger of the runs so far; empty before the first one. */
export function readLedger(): Ledger {
  try {
    return JSON.parse(readFileSync(ledgerPath, 'utf8')) as Ledger;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

export function writeLedger(ledger: Ledger): void {
  mkdirSync(dirname(ledgerPath), { recursive: true });
  const sorted = Object.fromEntries(Object.entries(ledger).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(`${ledgerPath}.new`, `${JSON.stringify(sorted, undefined, 1)}\n`);
  renameSync(`${ledgerPath}.new`, ledgerPath);
}

export function readGaps(): Gap[] {
  return parseGaps(readFileSync(gapsPath, 'utf8'));
}

/** The test files by combination, under the names of the document; what the document does not have is left out. */
export function filesByCombination(
  documented: readonly Combination[],
  ledger: Ledger,
): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>();
  for (const [file, combinations] of Object.entries(ledger)) {
    for (const name of combinations) files.set(name, [...(files.get(name) ?? []), file]);
  }
  return new Map(documented.map(({ name, recordedAs }) => [name, files.get(recordedAs) ?? []]));
}

export function judge(
  documented: readonly Combination[],
  ledger: Ledger,
  gaps: readonly Pick<Gap, 'name'>[],
): Judgement {
  const files = filesByCombination(documented, ledger);
  const listed = new Set(gaps.map(({ name }) => name));
  const isExercised = (name: string): boolean => (files.get(name) ?? []).length > 0;
  const known = new Set(documented.map(({ recordedAs }) => recordedAs));
  const recorded = new Set(Object.values(ledger).flat());
  return {
    unlisted: documented.map(({ name }) => name).filter((name) => !isExercised(name) && !listed.has(name)),
    closed: [...listed].filter(isExercised),
    undocumented: [...recorded].filter((name) => !known.has(name) && isOurs(name)).sort(),
  };
}

/** The messages of a judgement; empty when the ledger and the list of gaps agree. */
export function faultsOf({ unlisted, closed, undocumented }: Judgement): string[] {
  const faults: [names: readonly string[], what: string][] = [
    [unlisted, 'documented and exercised by no test; each needs one'],
    [closed, 'listed in test/house/uncovered.txt but exercised; `npm run ledger -- --prune` deletes them'],
    [undocumented, 'answered by an operation that does not document them'],
  ];
  return faults
    .filter(([names]) => names.length > 0)
    .flatMap(([names, what]) => [
      '',
      `${names.length} combinations are ${what}:`,
      ...names.map((name) => `  ${name}`),
    ]);
}

/**
 * Whether the document should have it: not a code in the words of a client's brand, and not a row that a test wrote
 * among the events, because recording one checks its type.
 */
function isOurs(recorded: string): boolean {
  const [operation, , code] = recorded.split(' ');
  return operation !== 'event' && (code === undefined || code in errorCatalogue);
}

/** The figures, in three lines and one for the gaps. */
export function figures(documented: readonly Combination[], ledger: Ledger): string[] {
  const files = filesByCombination(documented, ledger);
  const share = (names: readonly string[], exercised: readonly string[]): string =>
    `${exercised.length} of ${names.length} (${((exercised.length / names.length) * 100).toFixed(1)} %)`;
  const of = (kinds: readonly Combination['kind'][], unit: (name: string) => string): string => {
    const named = documented.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name);
    const exercised = named.filter((name) => files.get(name)?.length !== 0);
    return share([...new Set(named.map(unit))], [...new Set(exercised.map(unit))]);
  };
  const gaps = documented.filter(({ name }) => files.get(name)?.length === 0);
  return [
    `statuses of operations  ${of(['success', 'error'], (name) => name.split(' ', 2).join(' '))}`,
    `error codes             ${of(['error'], (name) => name)}`,
    `webhook events          ${of(['event'], (name) => name)}`,
    `gaps left               ${gaps.length}`,
  ];
}
