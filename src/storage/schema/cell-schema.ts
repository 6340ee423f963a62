import { postgresPool } from '../postgres-dialect.ts';

/** Returns the schema that a database URL names in its parameter `options`, as in `-c search_path=eu1`. */
export function schemaOf(databaseUrl: string): string | undefined {
  const options = new URL(databaseUrl).searchParams.get('options') ?? '';
  return /search_path=([a-z_][a-z0-9_]*)/.exec(options)?.[1];
}

/** Creates the schema that a database URL names, if it does not exist. */
export async function makeSchema(databaseUrl: string): Promise<void> {
  const schema = schemaOf(databaseUrl);
  if (schema !== undefined) await ask(databaseUrl, `create schema if not exists "${schema}"`);
}

/** Returns whether the database is a coordinator of Citus. */
export async function isDistributable(databaseUrl: string): Promise<boolean> {
  return (await ask(databaseUrl, "select 1 from pg_extension where extname = 'citus'")).length > 0;
}

/** Turns the schema that a database URL names into one that Citus can move to another node. */
export async function distributeSchema(databaseUrl: string): Promise<void> {
  const schema = schemaOf(databaseUrl);
  const distributed = await ask(
    databaseUrl,
    'select 1 from citus_schemas where schema_name = $1::regnamespace',
    schema,
  );
  if (distributed.length === 0) await ask(databaseUrl, 'select citus_schema_distribute($1)', schema);
}

async function ask(databaseUrl: string, text: string, ...values: unknown[]): Promise<readonly object[]> {
  const pool = postgresPool(
    { connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 10_000 },
    () => undefined,
    undefined,
  );
  try {
    return (await pool.query<object>(text, values)).rows;
  } finally {
    await pool.end();
  }
}
