import type { Platform } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Compilable, CompiledQuery, Kysely } from 'kysely';
import type { StatementOptions } from './statement-options.ts';

/** Runs a prepared query in the unit of work of `em`. */
export type PreparedQuery<Input, Row> = (
  em: SqlEntityManager,
  input: Input,
  options?: Omit<StatementOptions, 'isPrepared'>,
) => Promise<{ readonly rows: Row[]; readonly numAffectedRows?: bigint; readonly insertId?: bigint }>;

/** The placeholder of a value that is passed with each run. */
interface Slot {
  readonly slot: PropertyKey;
}

/**
 * A query that Kysely builds and compiles once per kind of database instead of once per request. Compiling is most of
 * the cost of a short query. For hot statements of a fixed shape.
 *
 * @param build must pass the members of `input` on unchanged, because it runs only once.
 */
export function prepareQuery<Tables, Input extends object, Row = never>(
  build: (database: Kysely<Tables>, input: Input) => Compilable<Row>,
): PreparedQuery<Input, Row> {
  // By the class of the platform, because all SQLite databases have the same SQL.
  const compiled = new WeakMap<Platform['constructor'], CompiledQuery<Row>>();
  return (em, input, options) => {
    const database = kyselyOf<Tables>(em);
    const platform = em.getPlatform().constructor;
    let query = compiled.get(platform);
    if (query === undefined) {
      query = build(database, slots as Input).compile();
      compiled.set(platform, query);
    }
    const prepared: StatementOptions = { ...options, isPrepared: true };
    // Kysely's own method adds two promises.
    return database
      .getExecutor()
      .executeQuery({ ...query, parameters: fill(query.parameters, input) }, prepared);
  };
}

/** Like `em.getKysely`, whose type cannot be stated for unknown tables. */
function kyselyOf<Tables>(em: SqlEntityManager): Kysely<Tables> {
  return em.getTransactionContext<Kysely<Tables>>() ?? em.getConnection('write').getClient<Tables>();
}

function fill<Input extends object>(parameters: readonly unknown[], input: Input): unknown[] {
  const filled: unknown[] = [];
  for (const value of parameters) filled.push(isSlot(value) ? input[value.slot as keyof Input] : value);
  return filled;
}

const slots = new Proxy({}, { get: (_, slot): Slot => ({ slot }) });

function isSlot(value: unknown): value is Slot {
  return typeof value === 'object' && value !== null && 'slot' in value;
}
