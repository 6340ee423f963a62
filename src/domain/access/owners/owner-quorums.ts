import type { LoadedQuorum } from '../../../engine/authorization/quorum.ts';
import type { Voucher, VoucherContent } from '../../../engine/authorization/user-vouchers.ts';
import type { PlanContext, QuorumRow, UnitNotes } from '../../../ports/operation-context.ts';
import { inParts, prepareQueryOfIds } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';

// HOT: runs for every request that changes or uses an owned resource (bench `held-load`, 2-of-3 signature).

const selectRows = prepareQueryOfIds<QuorumRow>((database, { ids, appId }) =>
  database
    .selectFrom('key_quorums as quorum')
    .leftJoin('key_quorum_members as row', 'row.key_quorum_id', 'quorum.id')
    .leftJoin('voucher_keys as key', (join) =>
      join.onRef('key.app_id', '=', 'quorum.app_id').onRef('key.name', '=', 'quorum.voucher'),
    )
    .select([
      'quorum.id',
      'quorum.display_name as displayName',
      'quorum.authorization_threshold as threshold',
      'quorum.voucher',
      'key.id as voucherKeyId',
      'row.kind',
      'row.member',
      'row.subject',
    ])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('key_quorum_changes as change')
          .select('change.position')
          .whereRef('change.key_quorum_id', '=', 'quorum.id'),
      ).as('hasChanges'),
    )
    .where('quorum.id', 'in', ids)
    .where('quorum.app_id', '=', appId)
    .orderBy('row.position'),
);

/**
 * `notes` caches the rows during a unit of work. It is undefined while a request is planned, before its unit of work.
 */
type ReadContext = Pick<PlanContext, 'em' | 'app'> & { readonly notes?: UnitNotes };

/** Reads the rows of the app's key quorums with these ids, in the order of their members. */
async function readQuorumRows(context: ReadContext, ids: readonly string[]): Promise<readonly QuorumRow[]> {
  if (ids.length === 0) return [];
  const rows = await selectRows(context, ids);
  if (context.notes !== undefined) context.notes.quorums = { appId: context.app.id, ids, rows };
  return rows;
}

/**
 * Returns the rows that `readQuorumRows` reads, from the cache of the unit of work if they are there. So the server
 * counts the signatures of a request with the same rows from which the key store gets its records.
 */
export async function knownQuorumRows(
  context: ReadContext,
  ids: readonly string[],
): Promise<readonly QuorumRow[]> {
  const before = context.notes?.quorums;
  const isKnown = before?.appId === context.app.id && isSameList(before.ids, ids);
  return isKnown ? before.rows : readQuorumRows(context, ids);
}

/** Clears the cached rows. Call it when the members of a key quorum have changed. */
export function forgetQuorumRows(notes: UnitNotes): void {
  notes.quorums = undefined;
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, place) => id === other[place]);
}

// CHOICE: the maximum number of keys of one user that are tried, newest first. Each login creates a key, which lives
// one hour.
const MAX_LIVE_KEYS = 100;
const MAX_EXPIRED_KEYS = 20;
// The maximum number of keys that are read for one user. Some of them may be limited to other intents.
const MAX_ROWS = 200;

type LoadContext = ReadContext & Pick<PlanContext, 'nowMs'>;

/** The rows of one key quorum, before its users and nested key quorums are loaded. */
interface QuorumRows {
  readonly id: string;
  readonly displayName: string | null;
  readonly threshold: number | null;
  /** Whether the key quorum counts only those keys of its users for which the key store vouches. */
  readonly isPinned: boolean;
  /** Whether the app has the voucher key that pins the users. */
  readonly hasVoucherKey: boolean;
  readonly members: Member[];
}

interface Member {
  readonly kind: string;
  readonly member: string;
  /** Only for a pinned user: the user's id in the app's login. */
  readonly subject: string | null;
}

interface UserKeys {
  readonly liveKeys: string[];
  readonly expiredKeys: string[];
  /** Maps the public key of each live key to the JSON of its voucher. */
  readonly vouchers: Map<string, string>;
}

/**
 * Loads the app's key quorums as they are at `context.nowMs`, by id. Unknown ids are left out. A key bound to intents
 * counts only if `intentId` is one of them.
 */
export async function loadQuorums(
  context: LoadContext,
  ids: readonly string[],
  intentId?: string,
): Promise<Map<string, LoadedQuorum>> {
  const parents = await readQuorums(context, ids);
  const nestedIds = membersOf([...parents.values()], 'key_quorum');
  const nested = await readQuorums(context, nestedIds);
  const userIds = membersOf([...parents.values(), ...nested.values()], 'user');
  const keys = await readUserKeys(context, userIds, intentId);

  const children = new Map([...nested].map(([id, rows]) => [id, assemble(rows, keys, new Map())]));
  return new Map([...parents].map(([id, rows]) => [id, assemble(rows, keys, children)]));
}

/** Loads a user as the only member of a key quorum that is not stored. */
export async function loadUserAsQuorum(context: LoadContext, userId: string): Promise<LoadedQuorum> {
  const keys = await readUserKeys(context, [userId], undefined);
  const members = [{ kind: 'user', member: userId, subject: null }];
  const unpinned = { isPinned: false, hasVoucherKey: false };
  return assemble({ id: userId, displayName: null, threshold: 1, ...unpinned, members }, keys, new Map());
}

function assemble(
  { id, displayName, threshold, isPinned, hasVoucherKey, members }: QuorumRows,
  keys: ReadonlyMap<string, UserKeys>,
  children: ReadonlyMap<string, LoadedQuorum>,
): LoadedQuorum {
  const ofKind = (kind: string) => members.filter((row) => row.kind === kind).map((row) => row.member);
  const users = members.filter(({ kind }) => kind === 'user');
  return {
    id,
    displayName,
    threshold,
    isPinned,
    publicKeys: ofKind('public_key'),
    users: users.map(({ member: userId, subject }) => {
      const known = keys.get(userId) ?? noKeys;
      return {
        userId,
        ...(isPinned ? vouchedKeys(known, hasVoucherKey ? subject : null) : unpinnedKeys(known)),
      };
    }),
    quorums: ofKind('key_quorum').map((childId) => children.get(childId) ?? emptyQuorum(childId)),
  };
}

const noKeys: UserKeys = { liveKeys: [], expiredKeys: [], vouchers: new Map() };

function unpinnedKeys({ liveKeys, expiredKeys }: UserKeys) {
  return { liveKeys, expiredKeys, vouchers: [] };
}

/**
 * Returns the keys of a pinned user that the key store counts: those for which it vouched under this id in the app's
 * login. A user whose account in the login was replaced also has keys under another id.
 */
function vouchedKeys({ liveKeys, expiredKeys, vouchers }: UserKeys, subject: string | null) {
  const counting = liveKeys.filter((key) => {
    const voucher = vouchers.get(key);
    return subject !== null && voucher !== undefined && subjectOf(voucher) === subject;
  });
  return { liveKeys: counting, expiredKeys, vouchers: counting.map((key) => vouchers.get(key)!) };
}

function subjectOf(voucher: string): string {
  const { content } = JSON.parse(voucher) as Voucher;
  return (JSON.parse(content) as VoucherContent).subject;
}

// Nobody can satisfy an empty quorum. It keeps the position of a deleted nested quorum among the members and never
// counts.
function emptyQuorum(id: string): LoadedQuorum {
  const nothing = { publicKeys: [], users: [], quorums: [] };
  return { id, displayName: null, threshold: null, isPinned: false, ...nothing };
}

function membersOf(quorums: readonly QuorumRows[], kind: string): string[] {
  const rows = quorums.flatMap((quorum) => quorum.members);
  return [...new Set(rows.filter((row) => row.kind === kind).map((row) => row.member))];
}

async function readQuorums(context: LoadContext, ids: readonly string[]): Promise<Map<string, QuorumRows>> {
  const quorums = new Map<string, QuorumRows>();
  const rows = await readQuorumRows(context, ids);
  for (const { id, displayName, threshold, voucher, voucherKeyId, kind, member, subject } of rows) {
    const pinned = { isPinned: voucher !== null, hasVoucherKey: voucherKeyId !== null };
    const quorum = quorums.get(id) ?? { id, displayName, threshold, ...pinned, members: [] };
    if (kind !== null && member !== null) quorum.members.push({ kind, member, subject });
    quorums.set(id, quorum);
  }
  return quorums;
}

async function readUserKeys(
  context: LoadContext,
  userIds: readonly string[],
  intentId: string | undefined,
): Promise<Map<string, UserKeys>> {
  const keys = new Map<string, UserKeys>();
  for await (const some of inParts(userIds)) {
    for (const row of await selectUserKeys(context, some)) {
      if (!mayAuthorize(row.intent_ids, intentId)) continue;
      const ofUser = keys.get(row.user_id) ?? { liveKeys: [], expiredKeys: [], vouchers: new Map() };
      keys.set(row.user_id, ofUser);
      const isLive = row.expires_at_ms > context.nowMs;
      const list = isLive ? ofUser.liveKeys : ofUser.expiredKeys;
      if (list.length < (isLive ? MAX_LIVE_KEYS : MAX_EXPIRED_KEYS)) {
        list.push(row.public_key);
        if (isLive && row.voucher !== null) ofUser.vouchers.set(row.public_key, row.voucher);
      }
    }
  }
  return keys;
}

/**
 * Selects only the newest keys of each user, so that a user who logs in often does not slow down the requests of other
 * users.
 */
function selectUserKeys({ em, app }: LoadContext, userIds: readonly string[]) {
  return em
    .getKysely<Tables>()
    .selectFrom((database) =>
      database
        .selectFrom('user_keys')
        .innerJoin('users', 'users.id', 'user_keys.user_id')
        .select(['user_keys.id', 'user_id', 'public_key', 'intent_ids', 'expires_at_ms'])
        .select(['user_keys.created_at_ms', 'user_keys.voucher'])
        .select(({ fn }) =>
          fn
            .agg<number>('row_number')
            .over((over) =>
              over
                .partitionBy('user_id')
                .orderBy('user_keys.created_at_ms', 'desc')
                .orderBy('user_keys.id', 'desc'),
            )
            .as('place'),
        )
        .where('user_id', 'in', [...userIds])
        .where('user_keys.app_id', '=', app.id)
        // Freezing a user deletes the user's keys. Servers of the previous version do not delete them.
        .where('users.frozen_at_ms', 'is', null)
        .as('newest'),
    )
    .select(['user_id', 'public_key', 'intent_ids', 'expires_at_ms', 'voucher'])
    .where('place', '<=', MAX_ROWS)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .execute();
}

function mayAuthorize(boundIntentIds: string | null, intentId: string | undefined): boolean {
  if (boundIntentIds === null) return true;
  if (intentId === undefined) return false;
  return (JSON.parse(boundIntentIds) as string[]).includes(intentId);
}
