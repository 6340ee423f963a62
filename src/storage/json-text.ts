import { p } from '@mikro-orm/core';

/** A property stored as JSON in a text column. Kysely sees the text. */
export function jsonText<Value>() {
  return p.json<Value>().columnType('text').$type<Value, string>();
}
