import { defaultTimeouts, postgresPool } from '../postgres-dialect.ts';
import { hasCitus } from './citus.ts';

/** Returns the `search_path` that a database URL sets in its parameter `options`, as the URL has it. */
export function searchPathOf(databaseUrl: string): string | undefined {
  // PostgreSQL uses the last `options`, and the last `search_path` in it, also in upper case or with a hyphen.
  const options = new URL(databaseUrl).searchParams.getAll('options').at(-1) ?? '';
  return [...options.matchAll(/search[_-]path=(.*?)(?=\s-|$)/gis)].at(-1)?.[1];
}

/**
 * Returns the schema that a database URL names in its parameter `options`, as in `-c search_path=eu1`. Returns
 * undefined if it names none, or one whose name PostgreSQL might read in another way: part of a name would be the
 * schema of another cell.
 */
export function schemaOf(databaseUrl: string): string | undefined {
  return /^([a-z_][a-z0-9_]{0,62})(?=[\s,]|$)/.exec(searchPathOf(databaseUrl) ?? '')?.[1];
}

/**
 * Creates the schema that a database URL names, if it does not exist.
 *
 * NOTE: `create schema if not exists` needs the right to create schemas even if the schema exists. A role of one cell
 * does not have it.
 */
export async function makeSchema(databaseUrl: string): Promise<void> {
  const schema = schemaOf(databaseUrl);
  if (schema === undefined) return;
  const found = await ask(databaseUrl, 'select 1 from pg_namespace where nspname = $1', schema);
  if (found.length === 0) await ask(databaseUrl, `create schema if not exists "${schema}"`);
}

/** Returns what is the same for all URLs of a schema: the cluster, the database and the name of the schema. */
export async function placeOf(databaseUrl: string): Promise<string> {
  const [row] = await ask<{ place: string }>(
    databaseUrl,
    `select (select system_identifier from pg_control_system()) || '/' ||
       (select oid from pg_database where datname = current_database()) || '/' ||
       coalesce($1, current_schema(), '') as place`,
    schemaOf(databaseUrl) ?? null,
  );
  return row!.place;
}

/** Returns whether the database has the extension that distributes schemas. */
export function isDistributable(databaseUrl: string): Promise<boolean> {
  return hasCitus((text) => ask(databaseUrl, text));
}

/**
 * Turns the schema that a database URL names into one that Citus can move to another node. Can be repeated.
 *
 * NOTE: Citus does not move unlogged tables, so this function makes them logged. The `lock_timeout` of a session does
 * not reach the node with the rows, so the limit becomes a setting of the role. The coordinator is told to pass on
 * `set local`, by which jobs set a shorter limit.
 */
export async function distributeSchema(databaseUrl: string): Promise<void> {
  const schema = schemaOf(databaseUrl);
  const unlogged = await ask<{ name: string }>(
    databaseUrl,
    `select quote_ident(relname) as name from pg_class
     where relnamespace = $1::regnamespace and relkind = 'r' and relpersistence = 'u'`,
    schema,
  );
  for (const { name } of unlogged) await ask(databaseUrl, `alter table ${name} set logged`);
  const distributed = await ask(
    databaseUrl,
    'select 1 from pg_dist_schema where schemaid = $1::regnamespace',
    schema,
  );
  if (distributed.length === 0) await ask(databaseUrl, 'select citus_schema_distribute($1)', schema);
  await ask(databaseUrl, `alter role current_user set lock_timeout = ${defaultTimeouts.lockMs}`);
  await ask(databaseUrl, "alter role current_user set citus.propagate_set_commands = 'local'");
}

async function ask<Row>(databaseUrl: string, text: string, ...values: unknown[]): Promise<readonly Row[]> {
  const pool = postgresPool(
    { connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 10_000 },
    () => undefined,
    undefined,
  );
  try {
    return (await pool.query(text, values)).rows as Row[];
  } finally {
    await pool.end();
  }
}
