import type { Platform } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Compilable, CompiledQuery, Kysely } from 'kysely';
import { asCommitting, asDeferred, asLast, asPrepared } from './statement-marks.ts';

/** Runs a prepared query in the unit of work of `em`. */
export type PreparedQuery<Input, Row> = (
  em: SqlEntityManager,
  input: Input,
  options?: PreparedOptions,
) => Promise<{ readonly rows: Row[]; readonly numAffectedRows?: bigint; readonly insertId?: bigint }>;

interface PreparedOptions {
  /** As `asLast` says. */
  readonly isLast?: boolean;
  /** As `asCommitting` says. */
  readonly commits?: boolean;
  /** As `asDeferred` says. */
  readonly isDeferred?: boolean;
}

/** The placeholder of a value that is passed with each run. */
interface Slot {
  readonly slot: PropertyKey;
}

/**
 * A query that Kysely builds and compiles once per kind of database instead of once per request, which is most of the cost of
 * a short query. For hot statements of a fixed shape.
 *
 * @param build must pass the members of `input` on unchanged: anything computed from them would be computed only
 * once.
 */
export function prepareQuery<Tables, Input extends object, Row = never>(
  build: (database: Kysely<Tables>, input: Input) => Compilable<Row>,
): PreparedQuery<Input, Row> {
  // By the class of the platform, because the SQL of two SQLite databases is the same.
  const compiled = new WeakMap<Platform['constructor'], Marked<Row>>();
  return (em, input, options) => {
    const database = em.getKysely() as unknown as Kysely<Tables>;
    const platform = em.getPlatform().constructor;
    let queries = compiled.get(platform);
    if (queries === undefined) {
      queries = markedOf(asPrepared(build(database, slots as Input).compile()));
      compiled.set(platform, queries);
    }
    const query = queries[options === undefined ? 'plain' : markOf(options)];
    // Kysely's own method adds two promises.
    return database.getExecutor().executeQuery({ ...query, parameters: fill(query.parameters, input) });
  };
}

/** A query with each of the marks. */
type Marked<Row> = Readonly<Record<'plain' | 'last' | 'committing' | 'deferred', CompiledQuery<Row>>>;

function markedOf<Row>(query: CompiledQuery<Row>): Marked<Row> {
  return {
    plain: query,
    last: asLast(query),
    committing: asCommitting(query),
    deferred: asDeferred(query),
  };
}

function markOf({ isLast, commits, isDeferred }: PreparedOptions): keyof Marked<unknown> {
  if (commits === true) return 'committing';
  if (isLast === true) return 'last';
  return isDeferred === true ? 'deferred' : 'plain';
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
