import { setImmediate } from 'node:timers/promises';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Compilable, Kysely } from 'kysely';
import { type PreparedQuery, prepareQuery as prepareQueryOf } from '../storage/prepared-statements.ts';
import type { Tables } from './tables.ts';

export type { PreparedQuery };

/** Does the same as `prepareQuery` of `src/storage`, with the types of our tables. */
export function prepareQuery<Input extends object, Row = never>(
  build: (database: Kysely<Tables>, input: Input) => Compilable<Row>,
): PreparedQuery<Input, Row> {
  return prepareQueryOf(build);
}

// The maximum number of ids per statement. Other requests can run between statements.
const AT_ONCE = 10;

/** Reads the rows of a list of ids of an app. */
export type QueryOfIds<Row> = (
  context: { readonly app: { readonly id: string }; readonly em: SqlEntityManager },
  ids: readonly string[],
) => Promise<Row[]>;

/** The parameters of a query: the ids by position, and the id of the app. */
type Input = { readonly [place: number]: string } & { readonly appId: string };

/**
 * Returns a function that reads the rows of a list of ids. It reads long lists in parts of at most ten ids, so that at
 * most ten queries are prepared.
 *
 * @param build must pass the ids and the app's id on unchanged.
 */
export function prepareQueryOfIds<Row>(
  build: (
    database: Kysely<Tables>,
    input: { readonly ids: readonly string[]; readonly appId: string },
  ) => Compilable<Row>,
): QueryOfIds<Row> {
  const prepared = new Map<number, PreparedQuery<Input, Row>>();
  const queryFor = (count: number): PreparedQuery<Input, Row> => {
    const known = prepared.get(count);
    if (known !== undefined) return known;
    const query = prepareQuery<Input, Row>((database, input) => {
      const ids = Array.from({ length: count }, (_, place) => input[place] as string);
      return build(database, { ids, appId: input.appId });
    });
    prepared.set(count, query);
    return query;
  };
  return async ({ app, em }, ids) => {
    const found: Row[] = [];
    for await (const part of inParts(ids)) {
      const { rows } = await queryFor(part.length)(em, { ...part, appId: app.id });
      found.push(...rows);
    }
    return found;
  };
}

/** Yields a list of ids in parts of at most `AT_ONCE` ids. Other requests can run between the parts. */
export async function* inParts(ids: readonly string[]): AsyncGenerator<readonly string[]> {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    if (from > 0) await setImmediate();
    yield ids.slice(from, from + AT_ONCE);
  }
}
