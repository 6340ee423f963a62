import { expect, test } from 'vitest';
import { migrations } from '../../src/storage/migrations/migrations.ts';
import {
  leastKnownBy,
  readStatements,
  splitStatements,
} from '../../src/storage/schema/migration-statements.ts';

// Expand and contract: servers of the version before run beside those of this one on the same database, while they are
// replaced one by one. So a migration adds, and a later one removes what the versions in between no longer use.

// From before the first release, and so from before the rule.
const unreleased = /^(0006-steps-of-actions|0015-crypto-deposits|0020-audit-log): /;

test('a migration only adds, unless its name says which versions no longer use what it removes', () => {
  const contracting = migrations.flatMap(({ name, postgres }) => {
    if (leastKnownBy(name) !== undefined) return [];
    return readStatements(postgres).flatMap(({ contracts, text }) =>
      contracts === undefined ? [] : `${name}: ${contracts}: ${text.split('\n')[0]!.slice(0, 60)}`,
    );
  });
  expect(contracting.filter((line) => !unreleased.test(line))).toEqual([]);
});

test('a migration that is named as one that removes does so, and what it removes is unused since an earlier one', () => {
  const faults = migrations.flatMap(({ name, postgres }, index) => {
    const least = leastKnownBy(name);
    if (least === undefined) return [];
    const isNeeded = readStatements(postgres).some(({ contracts }) => contracts !== undefined);
    return isNeeded && least >= 1 && least <= index ? [] : name;
  });
  expect(faults).toEqual([]);
});

// From before schemas could be distributed. A new cell is migrated first and distributed then.
const undistributed = /^(0023-partitions-contract-0021|0027-rate-levels): /;

test('a migration runs on a schema that Citus has distributed, and the schema can still be moved', () => {
  const refused = migrations.flatMap(({ name, postgres }) =>
    readStatements(postgres).flatMap(({ text }) =>
      /\brename constraint\b|\bowned by\b|^create unlogged\b/.test(text) ? [`${name}: ${text}`] : [],
    ),
  );
  expect(refused.filter((line) => !undistributed.test(line))).toEqual([]);
  expect(refused.length).toBeGreaterThan(5);
});

test('the statements of a migration, which are sent one by one, are its text', () => {
  const bare = (text: string): string => text.replaceAll(/[\s;]/g, '');
  for (const { name, postgres } of migrations)
    expect([name, bare(splitStatements(postgres).join(''))]).toEqual([name, bare(postgres)]);
});

/** SQL that `splitStatements` would cut in the middle of a statement, or change. */
const misread = /\/\*|\be'|\$/i;
const withoutDollarQuotes = (sql: string): string => sql.replaceAll(/\$\$.*?\$\$/gs, '');

test('a migration has no comment, string or quote that would be cut into statements', () => {
  const faults = migrations.filter(({ postgres }) => misread.test(withoutDollarQuotes(postgres)));
  expect(faults.map(({ name }) => name)).toEqual([]);
});

test.each([
  ['/* a; b */ drop table "cards"', true],
  ['update "cards" set "pin" = E\'it\\\'s; x\'', true],
  ['do $fn$ begin; end $fn$', true],
  ['do $$ begin; perform $1; end $$', false],
  ['update "cards" set "pin" = \'the note\'', false],
])('%s could be cut: %s', (sql, expected) => {
  expect(misread.test(withoutDollarQuotes(sql))).toBe(expected);
  expect(splitStatements(sql).length > 1 || splitStatements(sql)[0] !== sql).toBe(expected);
});

test.each([
  ['drop table "cards"', 'use the table'],
  ['drop table if exists "cards" cascade', 'use the table'],
  ['alter table "cards" drop column "pin"', 'use the column'],
  ['alter table "cards" rename column "pin" to "code"', 'old name'],
  ['alter table "cards" rename to "tokens"', 'old name'],
  ['alter table "cards" alter column "pin" type bigint', 'old type'],
  ['alter table "cards" alter column "pin" set not null', 'write null'],
  ['alter table "cards" alter column "pin" drop default', 'leave the column out'],
  ['alter table "cards" add "pin" text not null', 'needs a default'],
  ['alter table "cards" add "a" int null, add "pin" text not null', 'needs a default'],
  ['alter table "cards" add constraint "one" unique ("pin")', 'constraint refuses'],
  ['create unique index "one" on "cards" ("pin")', 'unique index refuses'],
  ['delete from "cards"', 'use the rows'],
  ['truncate table "cards"', 'use the rows'],
])('%s contracts the schema', (sql, reason) => {
  const [statement] = readStatements(`${sql};\n`);
  expect(statement).toMatchObject({ table: 'cards', contracts: expect.stringContaining(reason) });
});

test('what adds does not, nor what a migration does with a table of its own', () => {
  const statements = readStatements(`
    alter table "cards" add "pin" text null;
    alter table "cards" add "count" int not null default 0;
    create index "cards_by_pin" on "cards" ("pin");
    create table "limits" ("id" text not null, "text" text not null default 'a;b', primary key ("id"));
    alter table "limits" add constraint "one" unique ("text"); -- its own
    update "cards" set "count" = 1;
  `);
  expect(statements.map(({ contracts, lock }) => [contracts, lock])).toEqual([
    [undefined, 'reads and writes wait for a moment'],
    [undefined, 'reads and writes wait for a moment'],
    [undefined, 'writes wait while the index is built'],
    [undefined, undefined],
    [undefined, undefined],
    [undefined, 'writes of the same rows wait'],
  ]);
});

test('a statement of an unknown kind is not taken for one that adds', () => {
  expect(() => readStatements('vacuum full "cards";')).toThrow('unknown kind of statement');
});
