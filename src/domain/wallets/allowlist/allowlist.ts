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
  // If a concurrent request adds the same entry, this one collides and is retried.
  await em.flush();
  return entryView(entry);
}

/**
 * Removes an identity or a domain from the app's allowlist.
 *
 * @throws ApiError invalid_data, not_found
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
