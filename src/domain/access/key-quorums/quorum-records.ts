import { isDeepStrictEqual } from 'node:util';
import type { LoadedQuorum } from '../../../engine/authorization/quorum.ts';
import {
  changeDigests,
  type KnownQuorums,
  type QuorumBase,
  type QuorumChange,
  type QuorumRecord,
  quorumReference,
  type UserKeys,
} from '../../../engine/authorization/quorum-records.ts';
import { UnauthorizedUseError } from '../../../engine/authorization/signed-evidence.ts';
import type { PinnedUsers, Voucher } from '../../../engine/authorization/user-vouchers.ts';
import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { quorumChangesBinding, sentSeal } from '../../base/sealed-keys/sealed-keys.ts';
import type { Tables } from '../../tables.ts';
import { knownQuorumRows, loadQuorums } from '../owners/owner-quorums.ts';
import { type Authorization, evidenceOf } from '../owners/require-authorization.ts';
import type { StoredKeyQuorum } from './find-key-quorum.ts';
import { KeyQuorumEntity, KeyQuorumMemberEntity } from './key-quorum.entity.ts';
import { findVoucherKey } from './voucher-keys.ts';

// KYSELY: joins changes of key quorums with their seals; writes seals by upsert.

type RecordContext = Parameters<typeof knownQuorumRows>[0];

/**
 * Loads the records with which the key store verifies these key quorums of the app, followed by the records of their
 * nested key quorums. Unknown ids are left out.
 */
export async function loadQuorumRecords(
  context: RecordContext,
  ids: readonly string[],
): Promise<QuorumRecord[]> {
  const rows = await readQuorums(context, ids);
  const outer = new Set(rows.map(({ id }) => id));
  const inner = nestedIn(rows).filter((id) => !outer.has(id));
  const nested = inner.length === 0 ? [] : await readQuorums(context, inner);
  const all = [...rows, ...nested];
  const changes = await readChanges(context, all);
  const records = new Map<string, QuorumRecord>();
  // Handle key quorums without nested quorums first, because the records of the others refer to these.
  for (const row of all.toSorted((a, b) => a.quorums.length - b.quorums.length)) {
    const ofRow = changes.get(row.id) ?? [];
    const stored = ofRow[0]?.base;
    const base = stored == null ? baseOf(context, row, records) : (JSON.parse(stored) as QuorumBase);
    const parsed = ofRow.map(({ change }) => JSON.parse(change) as QuorumChange);
    records.set(row.id, { base, changes: parsed, ...sealIn(ofRow[0]) });
  }
  return all.map(({ id }) => records.get(id)!);
}

/**
 * Reads the keys of the users in these key quorums: their current keys and, while an intent is executed, the keys with
 * which they signed the intent.
 */
async function userKeysOf(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof'>,
  ids: readonly string[],
): Promise<KnownUsers> {
  const { agreement } = context.proof;
  const quorums = await loadQuorums(context, ids, agreement?.intentId);
  const users = [...quorums.values()].flatMap(usersIn);
  const vouchers = [...new Set(users.flatMap((user) => user.vouchers))].map(
    (text) => JSON.parse(text) as Voucher,
  );
  const userKeys: Record<string, readonly string[]> = {};
  for (const { userId, liveKeys } of users) {
    // A user can be in several key quorums, and a key that counts in one need not count in another. Merge the keys.
    const signedWith = agreement?.userKeys.get(userId);
    const keys = [
      ...(userKeys[userId] ?? []),
      ...liveKeys,
      ...(signedWith === undefined ? [] : [signedWith]),
    ];
    userKeys[userId] = [...new Set(keys)];
  }
  return vouchers.length === 0 ? { userKeys } : { userKeys, vouchers };
}

/**
 * Reads the keys of users in the form that the key store expects. If a key quorum pins its users, the result also
 * contains the vouchers for their keys, and the voucher key that verifies these vouchers.
 */
export async function knownUsers(
  context: Parameters<typeof userKeysOf>[0],
  ids: readonly string[],
  quorums: readonly QuorumRecord[],
): Promise<Pick<KnownQuorums, 'userKeys' | 'vouching'>> {
  const { userKeys, vouchers = [] } = quorums.some(mayHaveUsers)
    ? await userKeysOf(context, ids)
    : { userKeys: {} };
  const key = quorums.some(pinsUsers) ? await findVoucherKey(context) : undefined;
  if (key === undefined) return { userKeys };
  return { userKeys, vouching: { key: { id: key.id, seal: key.seal }, vouchers } };
}

function mayHaveUsers({ base, changes }: QuorumRecord): boolean {
  return base.userIds.length > 0 || changes.length > 0;
}

function pinsUsers({ base, changes }: QuorumRecord): boolean {
  return base.users !== undefined || changes.some(({ quorums }) => quorums.some(pinsUsers));
}

interface KnownUsers {
  readonly userKeys: UserKeys;
  readonly vouchers?: readonly Voucher[];
}

function usersIn({ users, quorums }: LoadedQuorum): LoadedQuorum['users'] {
  return [...users, ...quorums.flatMap(usersIn)];
}

/**
 * CHOICE: the maximum number of changes of one key quorum. After that, another key quorum has to replace it. Each use
 * of a wallet carries all changes of its key quorums, and the key store verifies each change when it first sees it.
 */
const MAX_CHANGES = 64;
const MAX_CHANGES_BYTES = 512 * 1024;

/**
 * Stores a change of the members or the threshold together with the request that the members signed, and has the key
 * store seal it. Call it before the members are replaced.
 *
 * @throws ApiError invalid_state after 64 changes, for changes of more than 512 KiB, and for an intent whose signatures
 * an earlier version collected.
 */
export async function recordQuorumChange(
  context: OperationContext,
  {
    before,
    after,
    subjects,
    authorization,
  }: {
    readonly before: StoredKeyQuorum;
    readonly after: StoredKeyQuorum;
    /** How the request for the change was authorized. */
    readonly authorization: Authorization;
    readonly subjects: PinnedUsers['subjects'] | undefined;
  },
): Promise<void> {
  if (isDeepStrictEqual(membersOf(before), membersOf(after))) return;
  const evidence = evidenceOf(context, authorization);
  if (evidence === undefined) {
    throw new ApiError(
      'invalid_state',
      'the signatures are from an earlier version; propose the change again',
    );
  }
  const records = await loadQuorumRecords(context, [
    before.id,
    ...new Set([...before.keyQuorumIds, ...after.keyQuorumIds]),
  ]);
  const [own, ...quorums] = records as [QuorumRecord, ...QuorumRecord[]];
  const change: QuorumChange = {
    ...{ evidence, ...(await userKeysOf(context, [before.id])), quorums },
    ...(subjects === undefined ? {} : { subjects }),
  };
  const changes = [...own.changes, change];
  const record = { ...own, changes };
  if (changes.length > MAX_CHANGES || Buffer.byteLength(JSON.stringify(changes)) > MAX_CHANGES_BYTES) {
    throw new ApiError(
      'invalid_state',
      'the key quorum was changed too often; create another one and make it the owner',
    );
  }
  const database = context.em.getKysely<Tables>();
  const binding = quorumChangesBinding({ id: before.id, app_id: context.app.id });
  const key = records.some(pinsUsers) ? await findVoucherKey(context) : undefined;
  const vouching = key && { key: { id: key.id, seal: key.seal }, vouchers: [] };
  const sealed = await context.keyStore.sealQuorumChange(binding, record, vouching);
  const columns = {
    digest: changeDigests(record).at(-1)!,
    sealed_secret: Buffer.from(sealed.sealedSecret),
    wrapped_data_key: Buffer.from(sealed.wrappedDataKey),
    master_key_id: sealed.masterKeyId,
  };
  await database
    .insertInto('key_quorum_seals')
    .values({ id: before.id, app_id: context.app.id, ...columns })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(columns))
    .execute();
  await database
    .insertInto('key_quorum_changes')
    .values({
      key_quorum_id: before.id,
      position: own.changes.length,
      base: own.changes.length === 0 ? JSON.stringify(own.base) : null,
      change: JSON.stringify(change),
    })
    .execute();
}

function membersOf({ threshold, publicKeys, userIds, keyQuorumIds }: StoredKeyQuorum): unknown {
  return { threshold, publicKeys, userIds, keyQuorumIds };
}

interface QuorumRow {
  readonly id: string;
  readonly threshold: number | null;
  readonly publicKeys: string[];
  readonly userIds: string[];
  /** Ids of nested key quorums. */
  readonly quorums: string[];
  readonly hasChanges: boolean;
  readonly users: { readonly voucher: string; readonly subjects: Record<string, string> } | undefined;
}

async function readQuorums(context: RecordContext, ids: readonly string[]): Promise<QuorumRow[]> {
  const rows = await knownQuorumRows(context, ids);
  const found = new Map<string, QuorumRow>();
  for (const { id, threshold, kind, member, hasChanges, ...pinned } of rows) {
    const users = pinned.voucher === null ? undefined : { voucher: pinned.voucher, subjects: {} };
    const empty = { publicKeys: [], userIds: [], quorums: [], hasChanges: Boolean(hasChanges), users };
    const quorum: QuorumRow = found.get(id) ?? { id, threshold, ...empty };
    found.set(id, quorum);
    if (member === null) continue;
    if (pinned.subject !== null && quorum.users !== undefined) quorum.users.subjects[member] = pinned.subject;
    if (kind === 'public_key') quorum.publicKeys.push(member);
    else if (kind === 'user') quorum.userIds.push(member);
    else quorum.quorums.push(member);
  }
  return ids.flatMap((id) => found.get(id) ?? []);
}

function nestedIn(rows: readonly QuorumRow[]): string[] {
  return [...new Set(rows.flatMap(({ quorums }) => quorums))];
}

async function readChanges({ em }: RecordContext, rows: readonly QuorumRow[]) {
  const ids = rows.filter(({ hasChanges }) => hasChanges).map(({ id }) => id);
  if (ids.length === 0) return new Map<string, never[]>();
  const changes = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_changes as change')
    .leftJoin('key_quorum_seals as seal', 'seal.id', 'change.key_quorum_id')
    .select(['change.key_quorum_id', 'change.base', 'change.change'])
    .select(['seal.sealed_secret', 'seal.wrapped_data_key', 'seal.master_key_id'])
    .where('change.key_quorum_id', 'in', ids)
    .orderBy('change.key_quorum_id')
    .orderBy('change.position')
    .execute();
  return Map.groupBy(changes, ({ key_quorum_id: id }) => id);
}

interface SealColumns {
  readonly sealed_secret: Uint8Array | null;
  readonly wrapped_data_key: Uint8Array | null;
  readonly master_key_id: string | null;
}

function sealIn(row: SealColumns | undefined): Pick<QuorumRecord, 'seal'> {
  const { sealed_secret: secret, wrapped_data_key: dataKey, master_key_id: masterKeyId } = row ?? {};
  if (secret == null || dataKey == null || masterKeyId == null) return {};
  return { seal: sentSeal({ sealedSecret: secret, wrappedDataKey: dataKey, masterKeyId }) };
}

function baseOf(
  { app }: RecordContext,
  { id, threshold, publicKeys, userIds, quorums, users }: QuorumRow,
  records: ReadonlyMap<string, QuorumRecord>,
): QuorumBase {
  const references = quorums.map((inner) => {
    const nested = records.get(inner);
    // The nested key quorum was deleted. Its id stays as a reference that no record has, so it never counts.
    return nested === undefined ? inner : quorumReference(nested.base);
  });
  const base = { appId: app.id, id, threshold, publicKeys, userIds, quorums: references };
  return users === undefined ? base : { ...base, users };
}

/** A bound for the query. An app has fewer key quorums with the same single key. */
const MAX_CANDIDATES = 100;

/**
 * Calls the key store with these key quorums. If the key store refuses because of the owner, calls it once more, with
 * the key quorum that it has on record as the owner in addition.
 *
 * NOTE: an owner named by a single key can match several key quorums with that key. In earlier versions the key store
 * could record a different one than the database. The second call is safe, because the key store counts signatures for
 * its own recorded owner. The next change of the owner makes both records the same.
 *
 * @param owner the reference of the recorded owner.
 */
export async function withRecordedOwner<T>(
  context: Pick<OperationContext, 'app' | 'em'>,
  { owner, quorums }: { readonly owner: string | null; readonly quorums: readonly QuorumRecord[] },
  ask: (quorums: readonly QuorumRecord[]) => Promise<T>,
): Promise<T> {
  try {
    return await ask(quorums);
  } catch (error) {
    if (!(error instanceof UnauthorizedUseError) || owner === null) throw error;
    const recorded = await findRecordedOwner(context, owner, quorums);
    if (recorded === undefined) throw error;
    return ask([...quorums, recorded]);
  }
}

/**
 * Finds the key quorum that the key store has on record as the owner, if it consists of a single key that is also the
 * only key of one of `quorums`. Returns undefined if `quorums` already contains the recorded owner.
 */
export async function findRecordedOwner(
  context: Pick<OperationContext, 'app' | 'em'>,
  owner: string,
  quorums: readonly QuorumRecord[],
): Promise<QuorumRecord | undefined> {
  if (quorums.some(({ base }) => quorumReference(base) === owner)) return undefined;
  const keys = quorums.flatMap(({ base }) => (base.publicKeys.length === 1 ? base.publicKeys : []));
  if (keys.length === 0) return undefined;
  const { app, em } = context;
  const members = await em.find(KeyQuorumMemberEntity, { kind: 'public_key', member: { $in: keys } });
  const ids = members.map(({ keyQuorumId }) => keyQuorumId);
  const limits = { orderBy: { id: 'asc' }, limit: MAX_CANDIDATES } as const;
  const own = await em.find(KeyQuorumEntity, { appId: app.id, id: { $in: ids } }, limits);
  const candidates = await loadQuorumRecords(
    context,
    own.map(({ id }) => id),
  );
  return candidates.find(({ base }) => quorumReference(base) === owner);
}
