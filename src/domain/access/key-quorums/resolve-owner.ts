import { InvalidPublicKeyError, parseP256PublicKey } from '../../../engine/crypto/p256.ts';
import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Tables } from '../../tables.ts';
import { requireUsers } from '../user-records/find-user.ts';
import { type KeyQuorumContext, type MemberKind, requireKeyQuorums } from './find-key-quorum.ts';
import { pinUsers } from './voucher-keys.ts';

/**
 * Converts a public key of a body to canonical form.
 *
 * @throws ApiError invalid_data that names the field.
 */
export function readPublicKey(key: string, pointer: string): string {
  try {
    return parseP256PublicKey(key);
  } catch (error) {
    if (error instanceof InvalidPublicKeyError) throw invalidField(pointer, error.message);
    throw error;
  }
}

// HOT: part of creating an owned wallet (bench `stored`); the entity manager has no key-share lock.

/** The fields with which a body names the owner of a resource. */
export interface OwnerFields {
  readonly owner?: { readonly public_key: string } | { readonly user_id: string } | null | undefined;
  /** The id of a key quorum; null removes the owner. */
  readonly owner_id?: string | null | undefined;
}

/**
 * Resolves `owner` or `owner_id` to a key quorum. For a user or a public key, this is a key quorum with that one
 * member. It is created when the user or key is first named, and reused afterwards.
 *
 * @param newId the id of the key quorum if it is created. Default: a new id.
 * @returns the key quorum's id; null when the owner is removed; undefined when neither field is given.
 * @throws ApiError invalid_data when both are given or the named owner does not exist.
 */
export async function resolveOwner(
  context: OperationContext,
  fields: OwnerFields,
  newId?: string,
): Promise<string | null | undefined> {
  const owner = await readOwner(context, fields);
  if (owner === undefined || owner === null || typeof owner === 'string') return owner;
  return quorumOfOne(context, owner, newId);
}

/** Stands for a key quorum that is created only when the change is executed. It owns nothing yet. */
const NEW_QUORUM = 'new';

/**
 * Makes the checks of `resolveOwner` without creating anything.
 *
 * @returns what `resolveOwner` returns, but `new` for a key quorum that does not exist yet.
 * @throws ApiError invalid_data when both are given or the named owner does not exist.
 */
export async function checkOwner(
  context: KeyQuorumContext,
  fields: OwnerFields,
): Promise<string | null | undefined> {
  const owner = await readOwner(context, fields);
  if (owner === undefined || owner === null || typeof owner === 'string') return owner;
  return (await findImplicit(context, implicitName(owner.kind, owner.member))) ?? NEW_QUORUM;
}

/**
 * Reads which owner the body names: a key quorum's id, the only member of a key quorum, null, or undefined.
 *
 * @throws ApiError invalid_data
 */
async function readOwner(
  context: KeyQuorumContext,
  { owner, owner_id: ownerId }: OwnerFields,
): Promise<string | { kind: MemberKind; member: string } | null | undefined> {
  if (owner !== undefined && ownerId !== undefined) {
    throw invalidField('/owner_id', 'expected either `owner` or `owner_id`, not both');
  }
  if (typeof ownerId === 'string') await requireKeyQuorums(context, [ownerId], '/owner_id');
  if (owner === undefined || owner === null) return owner === undefined ? ownerId : null;
  if ('public_key' in owner) {
    return { kind: 'public_key', member: readPublicKey(owner.public_key, '/owner/public_key') };
  }
  await requireUsers(context, [owner.user_id], '/owner/user_id');
  return { kind: 'user', member: owner.user_id };
}

// INVARIANT: a unique index on app and `implicit_for` ensures that only one of several concurrent requests creates
// the quorum.
async function quorumOfOne(
  context: OperationContext,
  { kind, member }: { kind: MemberKind; member: string },
  newId: string | undefined,
): Promise<string> {
  const implicitFor = implicitName(kind, member);
  const known = await findImplicit(context, implicitFor);
  if (known !== undefined) return known;
  const database = context.em.getKysely<Tables>();
  // Draw the id even if it is not needed, so that the later ids of a seeded sandbox do not depend on whether the key
  // quorum exists.
  const drawn = context.ids.cuid2();
  const id = newId ?? drawn;
  const users = kind === 'user' ? await pinUsers(context, [member]) : undefined;
  const { numInsertedOrUpdatedRows } = await database
    .insertInto('key_quorums')
    .values({
      id,
      app_id: context.app.id,
      display_name: null,
      authorization_threshold: 1,
      implicit_for: implicitFor,
      voucher: users?.voucher ?? null,
      created_at_ms: context.nowMs,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows === 1n) {
    await database
      .insertInto('key_quorum_members')
      .values({ key_quorum_id: id, position: 0, kind, member, subject: users?.subjects[member] ?? null })
      .execute();
    return id;
  }
  const made = await findImplicit(context, implicitFor);
  if (made === undefined) throw new Error('the key quorum made by a concurrent request is gone');
  return made;
}

/**
 * Finds the key quorum that was created for this public key or user as an owner; undefined if there is none. It may
 * have been changed since.
 */
export async function findQuorumOf(
  { app, em }: KeyQuorumContext,
  kind: 'public_key' | 'user',
  member: string,
): Promise<string | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('key_quorums')
    .select('id')
    .where('app_id', '=', app.id)
    .where('implicit_for', '=', implicitName(kind, member))
    .executeTakeFirst();
  return row?.id;
}

function implicitName(kind: MemberKind, member: string): string {
  return kind === 'user' ? `user:${member}` : `key:${member}`;
}

async function findImplicit(context: KeyQuorumContext, implicitFor: string): Promise<string | undefined> {
  // Lock the key quorum, so that it is not deleted or changed before the reference to it is stored.
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('key_quorums')
    .select('id')
    .where('app_id', '=', context.app.id)
    .where('implicit_for', '=', implicitFor)
    .forKeyShare()
    .executeTakeFirst();
  return row?.id;
}
