import { JsonType, p, UnderscoreNamingStrategy } from '@mikro-orm/core';

/** A property stored as JSON in a text column. Kysely sees the text. */
export function jsonText<Value>() {
  return p.json<Value>().columnType('text').$type<Value, string>();
}

interface Declared {
  readonly meta: {
    readonly tableName?: string;
    readonly properties: Readonly<Record<string, { readonly type?: unknown }>>;
  };
}

/** The columns of JSON by table: those of entities, and more. */
export function jsonColumnsOf(
  entities: readonly unknown[],
  more: readonly (readonly [table: string, column: string])[],
): ReadonlyMap<string, readonly string[]> {
  const naming = new UnderscoreNamingStrategy();
  const columns = new Map<string, string[]>();
  const add = (table: string, column: string): void =>
    void columns.set(table, [...(columns.get(table) ?? []), column]);
  for (const { meta } of entities as readonly Declared[]) {
    for (const [name, { type }] of Object.entries(meta.properties)) {
      if (type === JsonType || type instanceof JsonType) {
        add(meta.tableName!, naming.propertyToColumnName(name));
      }
    }
  }
  for (const [table, column] of more) add(table, column);
  return columns;
}
