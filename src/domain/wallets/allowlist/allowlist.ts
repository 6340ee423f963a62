import type { Selectable } from 'kysely';
import { notFound } from '../../../errors.ts';
import type { AllowlistEntry, AllowlistEntryRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { readAllowlistValue } from './allowlist-value.ts';

type EntryRow = Selectable<Tables['allowlist_entries']>;

const columns = [
  'id',
  'app_id',
  'type',
  'value',
  'accepted_at_ms',
  'created_at_ms',
] as const satisfies readonly (keyof EntryRow)[];

/** Every entry of the app, newest first. */
export async function listAllowlistEntries({
  app,
  em,
}: Pick<OperationContext, 'app' | 'em'>): Promise<AllowlistEntry[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('allowlist_entries')
    .select(columns)
    .where('app_id', '=', app.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(entryView);
}

/**
 * Puts somebody or a domain on the app's allowlist; what is on it stays as it is.
 *
 * @throws ApiError invalid_data
 */
export async function createAllowlistEntry(
  context: OperationContext,
  input: AllowlistEntryRequest,
): Promise<AllowlistEntry> {
  const value = readAllowlistValue(input);
  const database = context.em.getKysely<Tables>();
  await database
    .insertInto('allowlist_entries')
    .values({
      id: context.ids.cuid(),
      app_id: context.app.id,
      type: input.type,
      value,
      accepted_at_ms: null,
      created_at_ms: context.nowMs,
    })
    .onConflict((conflict) => conflict.columns(['app_id', 'type', 'value']).doNothing())
    .execute();
  const row = await database
    .selectFrom('allowlist_entries')
    .select(columns)
    .where('app_id', '=', context.app.id)
    .where('type', '=', input.type)
    .where('value', '=', value)
    .executeTakeFirstOrThrow();
  return entryView(row);
}

/**
 * Takes somebody or a domain off the app's allowlist.
 *
 * @throws ApiError invalid_data; not_found when it is not there.
 */
export async function deleteAllowlistEntry(
  { app, em }: OperationContext,
  input: AllowlistEntryRequest,
): Promise<void> {
  const { numDeletedRows } = await em
    .getKysely<Tables>()
    .deleteFrom('allowlist_entries')
    .where('app_id', '=', app.id)
    .where('type', '=', input.type)
    .where('value', '=', readAllowlistValue(input))
    .executeTakeFirstOrThrow();
  if (numDeletedRows === 0n) throw notFound('Allowlist entry');
}

function entryView(row: EntryRow): AllowlistEntry {
  return {
    id: row.id,
    appId: row.app_id,
    type: row.type,
    value: row.value,
    acceptedAt: row.accepted_at_ms,
  };
}
