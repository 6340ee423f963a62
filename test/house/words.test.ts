import { expect, test } from 'vitest';
import { cases } from '../../bench/cases.ts';
import { sourceFiles, withoutComments } from './source-files.ts';

const files = sourceFiles('src/**/*.{ts,tsx}', 'mocks/*.ts').map(({ path, text }) => ({
  path,
  code: withoutComments(text),
}));

/** `file: match` of every place where `word` occurs outside the paths that `allowed` matches. */
function placesOf(word: RegExp, allowed: RegExp): string[] {
  return files
    .filter(({ path }) => !allowed.test(path))
    .flatMap(({ path, code }) => [...code.matchAll(word)].map(([match]) => `${path}: ${match}`));
}

test('the clock is read in adapters only', () => {
  expect(
    placesOf(/\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\)/g, /^src\/(adapters|web\/inspector)\//),
  ).toEqual([]);
});

test('randomness is drawn in adapters only', () => {
  const makers =
    /\bMath\.random\b|\b(randomBytes|randomUUID|randomInt|randomFill(Sync)?|getRandomValues|generateKey(Pair)?(Sync)?|randomSecretKey|randomPrivateKey)\b/g;
  expect(placesOf(makers, /^src\/adapters\//)).toEqual([]);
});

test('the environment is read in the config only', () => {
  // The code that readers of the reference copy reads their environment.
  const allowed = /^src\/(config\/(config|client)|web\/docs\/code-samples)\.ts$/;
  expect(placesOf(/\bprocess\.env\b/g, allowed)).toEqual([]);
  expect(placesOf(/\bNODE_ENV\b/g, /^$/)).toEqual([]);
});

test('only the compositions know whether this is a sandbox or production', () => {
  const allowed = /^src\/(compose|admin|cli|adapters|keys|sandbox|tools|testing|web|config)\/|^mocks\//;
  // A setting of express, and the environment of a provider that requests mean when they name none.
  const known =
    /^src\/(server\/app|domain\/money\/fiat-customers\/find-customer)\.ts: (DEFAULT_ENVIRONMENT|production)$/;
  const places = placesOf(/\w*(sandbox|production)\w*/gi, allowed);
  expect(places.filter((place) => !known.test(place))).toEqual([]);
});

test('only storage, and the code that opens a database, know which database it is', () => {
  const allowed = /^src\/(storage|compose|admin|cli|config)\//;
  const words =
    /\w*(sqlite|postgres|dialect)\w*|\b(pg_\w+|hasRowLocks|isPostgres|getPlatform|supportsSchemas|\w*advisory\w*)\b|::(text|numeric|json|int|bigint)\b/gi;
  // The simulated chain keeps a file of its own; requests are counted by code that is handed its table.
  const known =
    /^src\/(sandbox\/simulated\/chains\/store(-answers|-history)?|adapters\/sandbox-folder|server\/rate-limit|server\/rate-levels)\.ts: /;
  const places = placesOf(words, allowed);
  expect(places.filter((place) => !known.test(place))).toEqual([]);
});

test('no verb forks the entity manager, which would take a second connection during a request', () => {
  // What is looked up before there is an operation, by the credentials check.
  const known = /^src\/domain\/(access\/apps\/app|wallets\/tokens\/access-tokens)\.ts: /;
  const places = placesOf(/\.fork\(/g, /^src\/(?!domain\/|api\/)/);
  expect(places.filter((place) => !known.test(place))).toEqual([]);
});

test('comments carry no marks but the agreed ones', () => {
  const marks = sourceFiles('src/**/*.ts', 'mocks/*.ts', 'codegen/*.ts', 'test/**/*.ts').flatMap(
    ({ path, text }) =>
      [...text.matchAll(/(?:\/\/|\*) ?(FIXME|HACK|XXX|TODO(?!\(#\d+\)))\b/g)].map(
        ([match]) => `${path}: ${match}`,
      ),
  );
  expect(marks).toEqual([]);
});

test('an intent’s status is written where its transitions are, and where a change dismisses it', () => {
  const writers = files
    .filter(({ code }) =>
      /(updateTable\('intents'\)\s*\.set\(|nativeUpdate\(\s*IntentEntity,\s*\{[^}]*\},\s*)\{[^}]*\bstatus:/.test(
        code,
      ),
    )
    .map(({ path }) => path);
  expect(writers).toEqual([
    'src/domain/base/resource-changes/dismiss-intents.ts',
    'src/domain/requests/intents/find-intent.ts',
  ]);
});

test('the domain uses Kysely only where a comment gives the reason: `HOT:` with its bench case, or `KYSELY:`', () => {
  // They define what the others use.
  const definitions = [
    'src/domain/prepared-query.ts',
    'src/domain/prepared-query.ts',
    'src/domain/tables.ts',
  ];
  const unmarked = sourceFiles('src/domain/**/*.ts')
    .filter(({ path }) => !definitions.includes(path))
    .filter(({ text }) =>
      /\b(getKysely|prepareQuery|prepareQueryOfIds|prepareInsertPair)\b/.test(withoutComments(text)),
    )
    .filter(({ text }) => !/(\/\/|\*) (HOT|KYSELY): \S/.test(text));
  expect(unmarked.map(({ path }) => path)).toEqual([]);
  const named = sourceFiles('src/domain/**/*.ts').flatMap(({ path, text }) =>
    [...text.matchAll(/HOT: ([\s\S]*?)(?:\n\n|\*\/|\n *[a-z])/g)].map(([, comment = '']) => ({
      path,
      cases: [...(/\(bench ([^)]*)/.exec(comment)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(
        ([, name = '']) => name,
      ),
    })),
  );
  const isCase = (name: string): boolean => Object.hasOwn(cases, name);
  expect(named.filter((each) => each.cases.length === 0 || !each.cases.every(isCase))).toEqual([]);
});

test('queries name their columns: a prepared `select *` breaks when a migration adds one', () => {
  expect(placesOf(/\b(selectAll|returningAll)\(/g, /^$/)).toEqual([]);
});
