import { p } from '@mikro-orm/core';

/** A property whose value a text column holds as JSON. To Kysely it is the text. */
export function jsonText<Value>() {
  return p.json<Value>().columnType('text').$type<Value, string>();
}
