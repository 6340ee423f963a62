/** A statement of a migration for PostgreSQL, and its effect on running servers. */
export interface MigrationStatement {
  readonly text: string;
  /** The table that the statement changes. */
  readonly table: string;
  /** The name of the table before the migration; undefined for a new table. */
  readonly source: string | undefined;
  /** Which statements of running servers wait until the migration ends, in words; undefined for a new table. */
  readonly lock: string | undefined;
  /** Why a server of the previous version cannot continue after the statement; undefined if it can. */
  readonly contracts: string | undefined;
}

interface Kind {
  readonly pattern: RegExp;
  readonly lock: string | undefined;
  /**
   * Why the statement contracts the schema, that is, removes what earlier versions use. The match is the whole
   * statement.
   */
  readonly contracts?: string;
}

const ALL = 'reads and writes wait';
const ALL_WHILE_READING = 'reads and writes wait while the table is read';
const WRITES_WHILE_BUILDING = 'writes wait while the index is built';

// The lock modes of PostgreSQL (documentation, section 13.3), in words. The first match wins.
const kinds: readonly Kind[] = [
  { pattern: /^create (?:unlogged )?table (?:if not exists )?"(\w+)"/, lock: undefined },
  {
    pattern: /^create unique index .* on "(\w+)"/,
    lock: WRITES_WHILE_BUILDING,
    contracts: 'servers that run may write what the unique index refuses',
  },
  { pattern: /^create index .* on "(\w+)"/, lock: WRITES_WHILE_BUILDING },
  { pattern: /^drop index (?:if exists )?"(\w+)"/, lock: ALL },
  { pattern: /^drop table (?:if exists )?"(\w+)"/, lock: ALL, contracts: 'servers that run use the table' },
  { pattern: /^truncate (?:table )?"(\w+)"/, lock: ALL, contracts: 'servers that run use the rows' },
  { pattern: /^alter table "(\w+)" rename/, lock: ALL, contracts: 'servers that run know the old name' },
  {
    pattern: /^alter table "(\w+)" .*\bdrop column\b/,
    lock: ALL,
    contracts: 'servers that run use the column',
  },
  {
    pattern: /^alter table "(\w+)" .*\balter column\b.*\b(?:set data )?type\b/,
    lock: 'reads and writes wait while the table is rewritten',
    contracts: 'servers that run have statements for the old type',
  },
  {
    pattern: /^alter table "(\w+)" .*\bset not null\b/,
    lock: ALL_WHILE_READING,
    contracts: 'servers that run may write null',
  },
  {
    pattern: /^alter table "(\w+)" .*\bdrop default\b/,
    lock: ALL,
    contracts: 'servers that run may leave the column out',
  },
  {
    pattern: /^alter table "(\w+)" .*\badd constraint\b/,
    lock: ALL_WHILE_READING,
    contracts: 'servers that run may write what the constraint refuses',
  },
  {
    pattern: /^alter table "(\w+)" .*\badd (?:column )?(?!.*\bdefault\b).*\bnot null\b/,
    lock: ALL,
    contracts: 'servers that run leave the column out: it needs a default',
  },
  { pattern: /^alter table "(\w+)" add primary key/, lock: ALL_WHILE_READING },
  { pattern: /^alter (?:index|sequence) "(\w+)"/, lock: `${ALL} for a moment` },
  // The block first names the rows that become a partition.
  { pattern: /^do \$\$.*?"(\w+_p0)"/, lock: ALL_WHILE_READING },
  { pattern: /^alter table "(\w+)" .*\badd (?:column )?"/, lock: `${ALL} for a moment` },
  { pattern: /^alter table "(\w+)" .*\b(?:drop not null|set default|drop constraint)\b/, lock: ALL },
  { pattern: /^insert into "(\w+)"/, lock: 'none but on the new rows' },
  { pattern: /^update "(\w+)"/, lock: 'writes of the same rows wait' },
  {
    pattern: /^delete from "(\w+)"/,
    lock: 'writes of the same rows wait',
    contracts: 'servers that run use the rows',
  },
];

/**
 * Reads the statements of a migration. Statements about a table that the migration itself creates do not affect running
 * servers.
 *
 * @throws Error for an unknown kind of statement.
 */
export function readStatements(postgres: string): MigrationStatement[] {
  const made = new Set<string>();
  // Tables are tracked under their new name: a renamed table keeps its rows, and a new table may take the old name.
  const sources = new Map<string, string>();
  return splitStatements(postgres).map((statement) => {
    const text = withoutComments(statement);
    const line = text.replaceAll(/\s+/g, ' ').toLowerCase();
    for (const { pattern, lock, contracts } of kinds) {
      const [, table] = pattern.exec(line) ?? [];
      if (table === undefined) continue;
      if (/^create (?:unlogged )?table/.test(line)) made.add(table);
      const [, , renamed] = /^alter table "(\w+)" rename to "(\w+)"/.exec(line) ?? [];
      if (renamed !== undefined) sources.set(renamed, sources.get(table) ?? table);
      const isOwn = made.has(table);
      return {
        ...{ text, table, source: isOwn ? undefined : (sources.get(table) ?? table) },
        ...{ lock: isOwn ? undefined : lock, contracts: isOwn ? undefined : contracts },
      };
    }
    throw new Error(`unknown kind of statement in a migration: \`${line.slice(0, 80)}\``);
  });
}

/**
 * Splits SQL into statements, at semicolons outside of quotes. They keep their comments.
 *
 * NOTE: knows neither block comments, nor escapes in strings, nor dollar quotes with a name. A house test keeps them
 * out of migrations.
 */
export function splitStatements(sql: string): string[] {
  const statements = sql.match(/(?:\$\$.*?\$\$|'[^']*'|"[^"]*"|--[^\n]*|[^;'"$])+/gs) ?? [];
  return statements.map((text) => text.trim()).filter((text) => withoutComments(text) !== '');
}

function withoutComments(sql: string): string {
  return sql.replaceAll(/--[^\n]*/g, '').trim();
}

/**
 * Returns the number of the oldest migration that a server must have to continue after this migration. The names of
 * migrations that contract the schema end with this number, for example `-contract-0021`, because servers of earlier
 * versions know only the name of a migration. Returns undefined for a migration that only adds.
 */
export function leastKnownBy(name: string): number | undefined {
  const [, number] = /-contract-(\d{4})$/.exec(name) ?? [];
  return number === undefined ? undefined : Number(number);
}
