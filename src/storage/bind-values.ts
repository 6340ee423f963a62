import { isRaw, type RawQueryFragment, raw, Utils } from '@mikro-orm/core';
import { type AbstractSqlConnection, NativeQueryBuilder } from '@mikro-orm/sql';
import { CompiledQuery, type Kysely } from 'kysely';
import type { Orm } from './open-database.ts';

type Execute = AbstractSqlConnection['execute'];
type Result = Awaited<ReturnType<Execute>>;

/** The placeholder of the n-th parameter, counted from 1. */
export type Placeholder = (number: number) => string;

/**
 * Makes the entity manager send values as parameters. MikroORM 7 writes them into the SQL text
 * (mikro-orm/mikro-orm#8001). Such statements cannot be reused as prepared statements, and the database logs stored
 * values with every statement that fails.
 */
export function bindValues(orm: Orm, placeholder: Placeholder): void {
  const connection = orm.em.getConnection();
  const platform = orm.em.getPlatform();

  function compile(sql: string, params: readonly unknown[]): CompiledQuery {
    const values: unknown[] = [];
    const bind = (value: unknown): string => {
      if (isRaw(value)) return fill(value.sql, value.params);
      if (Array.isArray(value)) return value.map(bind).join(', ');
      values.push(Utils.isPlainObject(value) ? JSON.stringify(value) : (value ?? null));
      return placeholder(values.length);
    };
    // MikroORM's placeholders: `?` is a value, `??` an identifier, `\?` a question mark.
    const fill = (text: string, given: readonly unknown[]): string => {
      let next = 0;
      return text.replaceAll(/\\\?|\?\??/g, (mark) => {
        if (mark === '\\?') return '?';
        const value = given[next++];
        return mark === '??' ? platform.quoteIdentifier(value as string) : bind(value);
      });
    };
    const text = params.length === 0 ? sql : fill(sql, params);
    return CompiledQuery.raw(text, values);
  }

  connection.execute = async function execute(query, params = [], method = 'all', ctx) {
    const { sql, params: values } = toFragment(query, params);
    const client: Kysely<unknown> = ctx ?? connection.getClient();
    const { rows, numAffectedRows, insertId } = await client.executeQuery(compile(sql, values));
    if (method === 'all') return rows as Result;
    if (method === 'get') return rows[0] as Result;
    return {
      affectedRows: Number(numAffectedRows ?? rows.length),
      insertId: insertId === undefined ? undefined : Number(insertId),
      row: rows[0],
      rows,
    } as Result;
  } as Execute;
}

function toFragment(
  query: Parameters<Execute>[0],
  params: NonNullable<Parameters<Execute>[1]>,
): Pick<RawQueryFragment, 'sql' | 'params'> {
  if (query instanceof NativeQueryBuilder) return query.toRaw();
  if (isRaw(query)) return query;
  return Array.isArray(params) ? { sql: query as string, params } : raw(query as string, params);
}
