import { notFound } from '../../../errors.ts';
import type { AllowlistEntry, AllowlistEntryRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { AllowlistEntryEntity, type StoredAllowlistEntry } from './allowlist-entry.entity.ts';
import { readAllowlistValue } from './allowlist-value.ts';

/** Every entry of the app, newest first. */
export async function listAllowlistEntries({
  app,
  em,
}: Pick<OperationContext, 'app' | 'em'>): Promise<AllowlistEntry[]> {
  const entries = await em.find(
    AllowlistEntryEntity,
    { appId: app.id },
    { orderBy: { createdAtMs: 'desc', id: 'desc' } },
  );
  return entries.map(entryView);
}

/**
 * Adds an entry to the app's allowlist. An existing entry is returned unchanged.
 *
 * @throws ApiError invalid_data
 */
export async function createAllowlistEntry(
  context: OperationContext,
  input: AllowlistEntryRequest,
): Promise<AllowlistEntry> {
  const { app, em } = context;
  const value = readAllowlistValue(input);
  const known = await em.findOne(AllowlistEntryEntity, { appId: app.id, type: input.type, value });
  const entry =
    known ??
    em.create(AllowlistEntryEntity, {
      id: context.ids.cuid(),
      appId: app.id,
      type: input.type,
      value,
      acceptedAtMs: null,
      createdAtMs: context.nowMs,
    });
  // A collision with another request that puts the same on the list runs this one again.
  await em.flush();
  return entryView(entry);
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
  const value = readAllowlistValue(input);
  const deleted = await em.nativeDelete(AllowlistEntryEntity, { appId: app.id, type: input.type, value });
  if (deleted === 0) throw notFound('Allowlist entry');
}

function entryView(entry: StoredAllowlistEntry): AllowlistEntry {
  return {
    id: entry.id,
    appId: entry.appId,
    type: entry.type as AllowlistEntry['type'],
    value: entry.value,
    acceptedAt: entry.acceptedAtMs,
  };
}
