import { sql } from 'kysely';
import { invalidField, invalidQuery, notFound } from '../../../errors.ts';
import type { ConditionSetItem, ConditionSetItemsRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { announceChange } from '../../base/resource-changes/announce-change.ts';
import type { Tables } from '../../tables.ts';
import { requireOwner } from '../owners/require-owner.ts';
import {
  type ConditionSetContext,
  findConditionSet,
  findConditionSetForUpdate,
} from './find-condition-set.ts';

const MAX_PAGE = 100;
const COLUMNS = ['id', 'condition_set_id', 'value', 'created_at_ms'] as const;

interface ItemRow {
  readonly id: string;
  readonly condition_set_id: string;
  readonly value: string;
  readonly created_at_ms: number;
}

function itemView({ id, condition_set_id, value, created_at_ms }: ItemRow): ConditionSetItem {
  return { id, condition_set_id, value, created_at: created_at_ms };
}

/**
 * Refuses what a text column cannot hold, and so could not be found again.
 *
 * @throws ApiError invalid_data
 */
export function requireText(input: ConditionSetItemsRequest): void {
  for (const [index, { value }] of input.entries()) {
    if (!value.isWellFormed()) {
      throw invalidField(`/${index}/value`, 'must be text without halves of surrogate pairs');
    }
  }
}

/** Inserts what is not there yet and answers every value's item, in the order given. */
async function putItems(
  context: OperationContext,
  setId: string,
  input: ConditionSetItemsRequest,
): Promise<ConditionSetItem[]> {
  requireText(input);
  const values = [...new Set(input.map(({ value }) => value))];
  const database = context.em.getKysely<Tables>();
  await database
    .insertInto('condition_set_items')
    .values(
      values.map((value) => ({
        id: context.ids.cuid2(),
        condition_set_id: setId,
        value,
        value_lower: value.toLowerCase(),
        created_at_ms: context.nowMs,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const rows = await database
    .selectFrom('condition_set_items')
    .select(COLUMNS)
    .where('condition_set_id', '=', setId)
    .where('value', 'in', values)
    .execute();
  await announceChange(context, { resource: 'condition set', id: setId, change: 'changed' });
  const byValue = new Map(rows.map((row) => [row.value, row]));
  return values.map((value) => itemView(byValue.get(value)!));
}

/**
 * Adds values to a condition set, with its owner's agreement. A value it has already keeps its item.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function addConditionSetItems(
  context: OperationContext,
  setId: string,
  input: ConditionSetItemsRequest,
): Promise<ConditionSetItem[]> {
  const set = await findConditionSetForUpdate(context, setId);
  await requireOwner(context, { ownerId: set.owner_id });
  return putItems(context, setId, input);
}

/**
 * Replaces all values of a condition set, with its owner's agreement.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function replaceConditionSetItems(
  context: OperationContext,
  setId: string,
  input: ConditionSetItemsRequest,
): Promise<ConditionSetItem[]> {
  const set = await findConditionSetForUpdate(context, setId);
  await requireOwner(context, { ownerId: set.owner_id });
  await context.em
    .getKysely<Tables>()
    .deleteFrom('condition_set_items')
    .where('condition_set_id', '=', setId)
    .execute();
  return putItems(context, setId, input);
}

/**
 * One item of a condition set.
 *
 * @throws ApiError not_found
 */
export async function findConditionSetItem(
  context: ConditionSetContext,
  setId: string,
  itemId: string,
): Promise<ConditionSetItem> {
  await findConditionSet(context, setId);
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('condition_set_items')
    .select(COLUMNS)
    .where('id', '=', itemId)
    .where('condition_set_id', '=', setId)
    .executeTakeFirst();
  if (row === undefined) throw notFound('Condition set item');
  return itemView(row);
}

/**
 * Removes one value, with the owner's agreement.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function deleteConditionSetItem(
  context: OperationContext,
  setId: string,
  itemId: string,
): Promise<void> {
  const set = await findConditionSetForUpdate(context, setId);
  await requireOwner(context, { ownerId: set.owner_id });
  await findConditionSetItem(context, setId, itemId);
  await context.em.getKysely<Tables>().deleteFrom('condition_set_items').where('id', '=', itemId).execute();
  await announceChange(context, { resource: 'condition set', id: setId, change: 'changed' });
}

/**
 * One page of a condition set's items, newest first; `query` keeps the values that contain it.
 *
 * @throws ApiError not_found, invalid_data for a cursor of no item.
 */
export async function listConditionSetItems(
  context: ConditionSetContext,
  setId: string,
  options: { cursor?: string | undefined; limit?: number | undefined; query?: string | undefined },
): Promise<{ items: ConditionSetItem[]; nextCursor: string | null }> {
  await findConditionSet(context, setId);
  const limit = options.limit ?? MAX_PAGE;
  let query = context.em
    .getKysely<Tables>()
    .selectFrom('condition_set_items')
    .select(COLUMNS)
    .where('condition_set_id', '=', setId);
  if (options.query !== undefined) {
    const pattern = `%${options.query.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
    query = query.where(sql<boolean>`value_lower like ${pattern} escape '\\'`);
  }
  if (options.cursor !== undefined) {
    const createdAtMs = await createdAt(context, setId, options.cursor);
    query = query.where(sql<boolean>`(created_at_ms, id) < (${createdAtMs}, ${options.cursor})`);
  }
  const rows = await query
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute();
  const page = rows.slice(0, limit);
  return { items: page.map(itemView), nextCursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
}

async function createdAt(context: ConditionSetContext, setId: string, cursor: string): Promise<number> {
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('condition_set_items')
    .select('created_at_ms')
    .where('id', '=', cursor)
    .where('condition_set_id', '=', setId)
    .executeTakeFirst();
  if (row === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a page before');
  return row.created_at_ms;
}
