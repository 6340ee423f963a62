import { sql } from 'kysely';
import { MAX_SIGNATURES } from '../../../engine/authorization/request-signatures.ts';
import type { PinnedUsers } from '../../../engine/authorization/user-vouchers.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { CreateKeyQuorumRequest, UpdateKeyQuorumRequest } from '../../../generated/schemas.ts';
import type { OperationContext, UnitContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import type { Tables } from '../../tables.ts';
import { forgetQuorumRows } from '../owners/owner-quorums.ts';
import { requireAuthorization } from '../owners/require-authorization.ts';
import { requireUsers } from '../user-records/find-user.ts';
import {
  findKeyQuorum,
  type KeyQuorumContext,
  type MemberKind,
  requireKeyQuorums,
  type StoredKeyQuorum,
} from './find-key-quorum.ts';
import {
  KeyQuorumChangeEntity,
  KeyQuorumEntity,
  KeyQuorumMemberEntity,
  KeyQuorumSealEntity,
} from './key-quorum.entity.ts';
import { recordQuorumChange } from './quorum-records.ts';
import { readPublicKey } from './resolve-owner.ts';
import { pinUsers, subjectsOf } from './voucher-keys.ts';

/** The members and the threshold of a key quorum before they are checked. */
type ProposedMembers = Pick<StoredKeyQuorum, 'threshold' | 'publicKeys' | 'userIds' | 'keyQuorumIds'>;

/**
 * Converts the public keys of a body to canonical form.
 *
 * @throws ApiError invalid_data that names the first invalid key, and for too many keys.
 */
function readPublicKeys(keys: readonly string[]): string[] {
  // Check the number before decoding, because decoding a key costs an elliptic curve operation.
  refuseTooMany(keys.length);
  return keys.map((key, index) => readPublicKey(key, `/public_keys/${index}`));
}

/**
 * Checks the members of a key quorum: each appears once and belongs to the app, the threshold can be reached, and
 * quorums nest at most one level.
 *
 * @param ownId the id of the quorum being changed; undefined for a new one.
 * @throws ApiError invalid_data
 */
async function checkMembers(
  context: KeyQuorumContext,
  members: ProposedMembers,
  ownId?: string,
): Promise<void> {
  const { publicKeys, userIds, keyQuorumIds } = members;
  refuseDuplicateMembers(publicKeys, '/public_keys');
  refuseDuplicateMembers(userIds, '/user_ids');
  refuseDuplicateMembers(keyQuorumIds, '/key_quorum_ids');
  checkThreshold(members);
  await requireUsers(context, userIds, '/user_ids');
  await requireKeyQuorums(context, keyQuorumIds, '/key_quorum_ids');
  await refuseDeepNesting(context, keyQuorumIds, ownId);
}

function checkThreshold({ threshold, publicKeys, userIds, keyQuorumIds }: ProposedMembers): void {
  const count = publicKeys.length + userIds.length + keyQuorumIds.length;
  if (count === 0) {
    throw invalidField('', 'expected at least one of `public_keys`, `user_ids`, `key_quorum_ids`');
  }
  refuseTooMany(count);
  if (threshold === null) return;
  if (!Number.isInteger(threshold) || threshold < 1) {
    throw invalidField('/authorization_threshold', `expected a whole number above 0, got ${threshold}`);
  }
  if (threshold > count) {
    throw invalidField(
      '/authorization_threshold',
      `expected at most ${count}, the number of members, got ${threshold}`,
    );
  }
}

// CHOICE: a key quorum has at most as many members as a request can have signatures. The specification gives no limit.
function refuseTooMany(count: number): void {
  if (count > MAX_SIGNATURES) {
    throw invalidField('', `expected at most ${MAX_SIGNATURES} members, got ${count}`);
  }
}

// CHOICE: a duplicate member is refused, not dropped, because the caller may expect it to count twice.
function refuseDuplicateMembers(values: readonly string[], pointer: string): void {
  const seen = new Set<string>();
  for (const [index, value] of values.entries()) {
    if (seen.has(value)) throw invalidField(`${pointer}/${index}`, 'expected distinct members');
    seen.add(value);
  }
}

async function refuseDeepNesting(
  context: KeyQuorumContext,
  keyQuorumIds: readonly string[],
  ownId: string | undefined,
): Promise<void> {
  if (keyQuorumIds.length === 0) return;
  if (ownId !== undefined && keyQuorumIds.includes(ownId)) {
    throw invalidField('/key_quorum_ids', 'a key quorum cannot be a member of itself');
  }
  const nested = await context.em.find(KeyQuorumMemberEntity, {
    kind: 'key_quorum',
    $or: [{ keyQuorumId: { $in: [...keyQuorumIds] } }, ...(ownId === undefined ? [] : [{ member: ownId }])],
  });
  const nesting = nested.find((row) => keyQuorumIds.includes(row.keyQuorumId));
  if (nesting !== undefined) {
    const message = `key quorum \`${nesting.keyQuorumId}\` has key quorums as members; nesting is one level deep`;
    throw invalidField('/key_quorum_ids', message);
  }
  if (nested.length > 0) {
    const message = `this key quorum is a member of \`${nested[0]?.keyQuorumId}\`; nesting is one level deep`;
    throw invalidField('/key_quorum_ids', message);
  }
}

/**
 * Replaces the members of a key quorum.
 *
 * NOTE: writes rows, not entities. A new member takes the primary key of the member that it replaces, and the entity
 * manager would treat the two as the same entity.
 *
 * @param subjects the ids of pinned users in the app's login, by user id.
 */
export async function storeMembers(
  { em, notes }: UnitContext,
  quorum: StoredKeyQuorum,
  subjects: PinnedUsers['subjects'] = {},
): Promise<void> {
  const rows = [
    ...rowsOf('public_key', quorum.publicKeys),
    ...rowsOf('user', quorum.userIds),
    ...rowsOf('key_quorum', quorum.keyQuorumIds),
  ].map((row, position) => ({ keyQuorumId: quorum.id, position, ...row, subject: subjectOf(row) }));
  function subjectOf({ kind, member }: { kind: MemberKind; member: string }): string | null {
    return (kind === 'user' ? subjects[member] : undefined) ?? null;
  }
  await em.nativeDelete(KeyQuorumMemberEntity, { keyQuorumId: quorum.id });
  await em.insertMany(KeyQuorumMemberEntity, rows);
  forgetQuorumRows(notes);
}

function rowsOf(kind: MemberKind, members: readonly string[]): { kind: MemberKind; member: string }[] {
  return members.map((member) => ({ kind, member }));
}

/**
 * Creates a key quorum of public keys, users and other key quorums.
 *
 * @throws ApiError invalid_data
 */
export async function createKeyQuorum(
  context: OperationContext,
  input: CreateKeyQuorumRequest,
): Promise<StoredKeyQuorum> {
  const members = {
    threshold: input.authorization_threshold ?? null,
    publicKeys: readPublicKeys(input.public_keys ?? []),
    userIds: input.user_ids ?? [],
    keyQuorumIds: input.key_quorum_ids ?? [],
  };
  await checkMembers(context, members);
  const users = await pinUsers(context, members.userIds);
  const quorum = { id: context.ids.cuid2(), displayName: input.display_name ?? null, ...members };
  context.em.create(KeyQuorumEntity, {
    id: quorum.id,
    appId: context.app.id,
    displayName: quorum.displayName,
    authorizationThreshold: quorum.threshold,
    implicitFor: null,
    voucher: users?.voucher ?? null,
    createdAtMs: context.nowMs,
  });
  await context.em.flush();
  await storeMembers(context, quorum, users?.subjects);
  return quorum;
}

/**
 * Locks a key quorum until the transaction ends. Between a check and the change that depends on it, the quorum cannot
 * be changed, deleted or newly referred to. Ignores unknown ids.
 */
export async function lockKeyQuorum({ app, em }: KeyQuorumContext, id: string): Promise<void> {
  await em.findOne(KeyQuorumEntity, { id, appId: app.id }, lockForUpdate);
}

/**
 * Locks key quorums and their nested quorums against change and deletion until the transaction ends, so that repeated
 * authorization checks agree.
 *
 * KYSELY: the entity manager has no key-share lock.
 */
export async function lockKeyQuorumsForShare(
  context: KeyQuorumContext,
  ids: readonly string[],
): Promise<void> {
  const database = context.em.getKysely<Tables>();
  const nested = database
    .selectFrom('key_quorum_members')
    .select('member')
    .where('key_quorum_id', 'in', [...ids])
    .where('kind', '=', 'key_quorum');
  await database
    .selectFrom('key_quorums')
    .select('id')
    .where('app_id', '=', context.app.id)
    .where(({ eb, or }) => or([eb('id', 'in', [...ids]), eb('id', 'in', nested)]))
    .orderBy('id')
    .forKeyShare()
    .execute();
}

/**
 * Updates a key quorum. Given lists replace the stored ones; omitted lists stay. Requires authorization by the members
 * and with the threshold from before the change.
 *
 * @throws ApiError not_found, invalid_data, what `requireAuthorization` throws, and what `recordQuorumChange` throws.
 */
export async function updateKeyQuorum(
  context: OperationContext,
  id: string,
  change: UpdateKeyQuorumRequest,
): Promise<StoredKeyQuorum> {
  await lockKeyQuorum(context, id);
  const before = await findKeyQuorum(context, id);
  const authorization = await requireAuthorization(context, { ownerId: id });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const after = await checkKeyQuorumChange(context, before, change);
  const quorum = await context.em.findOneOrFail(KeyQuorumEntity, { id });
  const subjects = quorum.voucher === null ? undefined : await subjectsAfter(context, after);
  await recordQuorumChange(context, { before, after, subjects, authorization });
  quorum.displayName = after.displayName;
  quorum.authorizationThreshold = after.threshold;
  // INVARIANT: an implicit quorum that was changed no longer stands for the user or key for which it was created.
  quorum.implicitFor = null;
  await context.em.flush();
  await storeMembers(context, after, subjects);
  await dismissIntentsAbout(context, { resource: 'key quorum', id, change: 'changed' });
  return after;
}

/**
 * Returns the pins of the users after a change. Users who stay members keep their pins, because the first record of the
 * key quorum contains them.
 */
async function subjectsAfter(
  context: OperationContext,
  { id, userIds }: StoredKeyQuorum,
): Promise<PinnedUsers['subjects']> {
  const rows = await context.em.find(KeyQuorumMemberEntity, { keyQuorumId: id, kind: 'user' });
  const pinned = rows.flatMap(({ member, subject }) => (subject === null ? [] : [[member, subject]]));
  return { ...(await subjectsOf(context, userIds)), ...Object.fromEntries(pinned) };
}

/**
 * Returns what a key quorum would be after a change, without changing it.
 *
 * @throws ApiError invalid_data when the result would be invalid.
 */
export async function checkKeyQuorumChange(
  context: KeyQuorumContext,
  before: StoredKeyQuorum,
  change: UpdateKeyQuorumRequest,
): Promise<StoredKeyQuorum> {
  const after: StoredKeyQuorum = {
    id: before.id,
    displayName: change.display_name ?? before.displayName,
    threshold: change.authorization_threshold ?? before.threshold,
    publicKeys: change.public_keys === undefined ? before.publicKeys : readPublicKeys(change.public_keys),
    userIds: change.user_ids ?? before.userIds,
    keyQuorumIds: change.key_quorum_ids ?? before.keyQuorumIds,
  };
  await checkMembers(context, after, before.id);
  return after;
}

// KYSELY: queries tables of higher layers by name, because their entities cannot be imported here.

/** A column in which another resource refers to a key quorum. */
interface KeyQuorumReference {
  /** The role of the key quorum for the resource, for error messages. */
  readonly as: string;
  readonly isNamed: (context: KeyQuorumContext, id: string) => Promise<boolean>;
}

/** All references. Add a line for each new resource that has an owner or signers. */
const references: readonly KeyQuorumReference[] = [
  { as: 'the owner of a wallet', isNamed: namedIn('wallets', 'owner_id') },
  { as: 'a signer of a wallet', isNamed: namedIn('wallet_signers', 'signer_id') },
  { as: 'the owner of a policy', isNamed: namedIn('policies', 'owner_id') },
  { as: 'the owner of a condition set', isNamed: namedIn('condition_sets', 'owner_id') },
  { as: 'the owner of an aggregation', isNamed: namedIn('aggregations', 'owner_id') },
  { as: 'the owner of an automation', isNamed: namedIn('wallet_automations', 'owner_id') },
  { as: 'the default of an organization', isNamed: namedIn('organizations', 'default_key_quorum_id') },
  { as: 'a member of another key quorum', isNamed: namedIn('key_quorum_members', 'member') },
];

/** Returns the roles that a key quorum still has, such as `the owner of a wallet`. */
async function listKeyQuorumReferences(context: KeyQuorumContext, id: string): Promise<string[]> {
  const named: string[] = [];
  for (const reference of references) {
    if (await reference.isNamed(context, id)) named.push(reference.as);
  }
  return named;
}

function namedIn<Table extends keyof Tables & string>(
  table: Table,
  column: keyof Tables[Table] & string,
): KeyQuorumReference['isNamed'] {
  return async ({ em }, id) => {
    const query = sql`select 1 from ${sql.table(table)} where ${sql.ref(column)} = ${id} limit 1`;
    return (await query.execute(em.getKysely<Tables>())).rows.length > 0;
  };
}

/**
 * Deletes a key quorum that nothing refers to. Requires authorization by its own members.
 *
 * @throws ApiError not_found; authorization_key_has_associated_wallets while something refers to it; and what
 * `requireAuthorization` throws.
 */
export async function deleteKeyQuorum(context: OperationContext, id: string): Promise<void> {
  await lockKeyQuorum(context, id);
  await findKeyQuorum(context, id);
  await requireAuthorization(context, { ownerId: id });
  const named = await listKeyQuorumReferences(context, id);
  if (named.length > 0) {
    throw new ApiError(
      'authorization_key_has_associated_wallets',
      `the key quorum cannot be deleted: it is ${named.join(' and ')}`,
    );
  }
  await context.em.nativeDelete(KeyQuorumMemberEntity, { keyQuorumId: id });
  await context.em.nativeDelete(KeyQuorumChangeEntity, { keyQuorumId: id });
  await context.em.nativeDelete(KeyQuorumSealEntity, { id });
  await context.em.nativeDelete(KeyQuorumEntity, { id });
  await dismissIntentsAbout(context, { resource: 'key quorum', id, change: 'deleted' });
}

/**
 * CHOICE: the maximum number of members in the key quorums of a wallet's additional signers. The specification gives
 * none. Each request that needs authorization reads the keys of every member. One key quorum can have 95 members and 5
 * nested key quorums of 100 members each. A key quorum that grows later is not checked again.
 */
const MAX_MEMBERS = 600;

/**
 * Checks that the given key quorums and their nested quorums have at most `MAX_MEMBERS` members in total. A key
 * quorum that is nested twice counts twice.
 *
 * @param pointer JSON pointer to the field that names them.
 * @throws ApiError invalid_data
 */
export async function requireFewMembers(
  context: KeyQuorumContext,
  ids: readonly string[],
  pointer: string,
): Promise<void> {
  if (ids.length === 0) return;
  const count = await countMembers(context, [...new Set(ids)]);
  if (count > MAX_MEMBERS) {
    throw invalidField(pointer, `expected at most ${MAX_MEMBERS} members in all key quorums, got ${count}`);
  }
}

/**
 * Counts the members of key quorums, including those of nested key quorums.
 *
 * KYSELY: one statement joins the members with the members of nested key quorums.
 */
async function countMembers({ em }: KeyQuorumContext, ids: readonly string[]): Promise<number> {
  const { count } = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members as member')
    .leftJoin('key_quorum_members as nested', (join) =>
      join.onRef('nested.key_quorum_id', '=', 'member.member').on('member.kind', '=', 'key_quorum'),
    )
    .where('member.key_quorum_id', 'in', ids)
    .select((expression) => expression.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}
