import type { Compilable, Kysely } from 'kysely';
import { type PreparedQuery, prepareQuery as prepareQueryOf } from '../storage/prepared-query.ts';
import type { Tables } from './tables.ts';

export type { PreparedQuery };

/** `prepareQuery` of storage, for our tables. */
export function prepareQuery<Input extends object, Row = never>(
  build: (database: Kysely<Tables>, input: Input) => Compilable<Row>,
): PreparedQuery<Input, Row> {
  return prepareQueryOf(build);
}
