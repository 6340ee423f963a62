import { invalidField } from '../../../errors.ts';
import type { CustomMetadata } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findUserForUpdate, type StoredUser } from '../../access/user-records/find-user.ts';
import type { Tables } from '../../tables.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

const MAX_BYTES = 1024;

/**
 * Replaces a user's metadata; an empty object clears it.
 *
 * @throws ApiError not_found; invalid_data beyond 1024 bytes of JSON.
 */
export async function replaceCustomMetadata(
  context: OperationContext,
  userId: string,
  metadata: CustomMetadata,
): Promise<StoredUser> {
  return store(context, await findUserForUpdate(context, userId), metadata);
}

/**
 * Merges metadata into the existing one: given names get the new value.
 *
 * @throws ApiError not_found; invalid_data when the result is beyond 1024 bytes of JSON.
 */
export async function mergeCustomMetadata(
  context: OperationContext,
  userId: string,
  metadata: CustomMetadata,
): Promise<StoredUser> {
  const user = await findUserForUpdate(context, userId);
  const known: CustomMetadata = JSON.parse(user.row.custom_metadata ?? '{}');
  return store(context, user, { ...known, ...metadata });
}

/**
 * Metadata as stored: JSON, or null when empty.
 *
 * @throws ApiError invalid_data beyond 1024 bytes of JSON in UTF-8.
 */
export function encodeCustomMetadata(metadata: CustomMetadata | undefined): string | null {
  if (metadata === undefined || Object.keys(metadata).length === 0) return null;
  const text = JSON.stringify(metadata);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_BYTES) {
    throw invalidField('/custom_metadata', `must have at most ${MAX_BYTES} bytes of JSON, has ${bytes}`);
  }
  return text;
}

async function store(
  { em }: OperationContext,
  { row, linkedAccounts }: StoredUser,
  metadata: CustomMetadata,
): Promise<StoredUser> {
  const custom_metadata = encodeCustomMetadata(metadata);
  await em
    .getKysely<Tables>()
    .updateTable('users')
    .set({ custom_metadata })
    .where('id', '=', row.id)
    .execute();
  return { row: { ...row, custom_metadata }, linkedAccounts };
}
