import { type Dialect, PostgresDialect, type PostgresPoolClient } from 'kysely';
import { Pool, type PoolClient, type PoolConfig, types } from 'pg';

/** As many SQL texts as one process ever names; lists of parameters of unlike length make new texts. */
const MAX_NAMED = 500;

/** `bigint`: our times and sequences stay far below 2^53. */
const INT8_OID = 20;

/** Makes the pool that `postgresDialect` runs on. */
export function postgresPool(config: PoolConfig, onError: (error: Error) => void): Pool {
  const pool = new Pool({ ...config, types: { getTypeParser } });
  pool.on('error', onError);
  // While a client is out of the pool its errors come here; unheard, they would end the process.
  pool.on('connect', (client) => client.on('error', onError));
  return pool;
}

const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === INT8_OID && format !== 'binary' ? Number : types.getTypeParser(oid, format as 'text');

/**
 * Kysely over `pg` with named statements: PostgreSQL parses and plans each SQL text once per connection.
 */
export function postgresDialect(pool: Pool): Dialect {
  const nameOf = rememberNames();
  return new PostgresDialect({
    pool: {
      options: pool.options,
      end: () => pool.end(),
      connect: async () => checkOut(await pool.connect(), nameOf),
    },
  });
}

function checkOut(client: PoolClient, nameOf: (sql: string) => string | undefined): PostgresPoolClient {
  let isOut = true;
  const release = (error?: Error) => {
    if (isOut) client.release(error);
    isOut = false;
  };

  async function query(sql: string, parameters: readonly unknown[]) {
    // NOTE: the server refuses several commands in one prepared statement; only migrations send such texts.
    const name = parameters.length === 0 ? undefined : nameOf(sql);
    const values = [...parameters];
    try {
      return await (name === undefined
        ? client.query(sql, values)
        : client.query({ name, text: sql, values }));
    } catch (error) {
      // NOTE: Kysely keeps a connection whose rollback failed; a dead one must go, or the pool runs dry.
      if (sql === 'rollback') release(error as Error);
      throw error;
    }
  }

  return { query: query as unknown as PostgresPoolClient['query'], release: () => release() };
}

function rememberNames(): (sql: string) => string | undefined {
  const names = new Map<string, string>();
  return (sql) => {
    const known = names.get(sql);
    if (known !== undefined || names.size >= MAX_NAMED) return known;
    const name = `custos_${names.size}`;
    names.set(sql, name);
    return name;
  };
}
