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
  const faces = new WeakMap<PoolClient, NamingClient>();
  return new PostgresDialect({
    pool: {
      options: pool.options,
      end: () => pool.end(),
      async connect() {
        const client = await pool.connect();
        let face = faces.get(client);
        if (face === undefined) {
          face = nameStatements(client, nameOf);
          faces.set(client, face);
        }
        face.isOut = true;
        return face;
      },
    },
  });
}

interface NamingClient extends PostgresPoolClient {
  /** Whether the pool has lent the client and not got it back. */
  isOut: boolean;
}

function nameStatements(client: PoolClient, nameOf: (sql: string) => string | undefined): NamingClient {
  const release = (error?: Error) => {
    if (face.isOut) client.release(error);
    face.isOut = false;
  };

  function query(sql: string, values: unknown[]) {
    // NOTE: the server refuses several commands in one prepared statement; only migrations send such texts.
    const name = values.length === 0 ? undefined : nameOf(sql);
    const result = name === undefined ? client.query(sql, values) : client.query({ name, text: sql, values });
    if (sql !== 'rollback') return result;
    // NOTE: Kysely keeps a connection whose rollback failed; a dead one must go, or the pool runs dry.
    return result.catch((error: Error) => {
      release(error);
      throw error;
    });
  }

  const face: NamingClient = {
    isOut: false,
    query: query as unknown as PostgresPoolClient['query'],
    release: () => release(),
  };
  return face;
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
