import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../../engine/crypto/p256.ts';
import { invalidQuery } from '../../../errors.ts';
import type { IntentResponse, IntentStatus, IntentType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { listKeyQuorumsOfIds, type Member, membershipsOf } from '../../access/key-quorums/find-key-quorum.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { visibleIntents } from './find-intent.ts';
import type { IntentRow } from './intent.entity.ts';
import { readIntentViews } from './intent-view.ts';

// KYSELY: see `IntentRow` in `intent.entity.ts`.

const MAX_PAGE = 100;

// CHOICE: an intent and the resource that it changes can each be a megabyte long. A page ends with the intent that
// brings it above two megabytes. A hundred such intents would block the event loop for seconds.
const MAX_CHARACTERS = 2 * 1024 * 1024;
/** The number of intents that are read first, before their length is known. */
const FIRST_ROWS = 4;

type ListContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof'>;

export interface IntentFilter {
  readonly status?: IntentStatus | undefined;
  readonly intentType?: IntentType | undefined;
  readonly resourceId?: string | undefined;
  readonly createdById?: string | undefined;
  /** A user id, a P-256 public key or a key quorum id. Selects the pending intents that this member can still sign. */
  readonly pendingMemberId?: string | undefined;
  readonly currentUserHasSigned?: boolean | undefined;
}

const orders = {
  created_at_desc: { column: 'created_at_ms', direction: 'desc', beyond: sql`<` },
  expires_at_asc: { column: 'expires_at_ms', direction: 'asc', beyond: sql`>` },
  updated_at_desc: { column: 'updated_at_ms', direction: 'desc', beyond: sql`<` },
} as const;

type IntentOrder = keyof typeof orders;

export interface PageRequest {
  readonly order?: IntentOrder | undefined;
  /** The `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
  /** 1 to 100, and 100 by default. */
  readonly limit?: number | undefined;
}

/**
 * Lists one page of the intents that the caller may see, in wire form, newest first unless ordered otherwise. A page of
 * long intents has fewer than `limit`.
 *
 * @throws ApiError invalid_data for an invalid cursor or member, and for `currentUserHasSigned` without a user.
 */
export async function listIntents(
  context: ListContext,
  filter: IntentFilter,
  { order = 'created_at_desc', cursor, limit = MAX_PAGE }: PageRequest,
): Promise<{ intents: IntentResponse[]; nextCursor: string | null }> {
  const { column } = orders[order];
  const query = await filtered(context, filter);
  const intents: IntentResponse[] = [];
  let after = cursor === undefined ? undefined : readCursor(cursor);
  let characters = 0;
  for (;;) {
    const count = Math.min(limit - intents.length, characters > 0 ? rowsThatFit() : FIRST_ROWS);
    // One row more than requested shows whether there is another page.
    const rows = await pageOf(context, query, { order, after, limit: count + 1, status: filter.status });
    const views = await readIntentViews(context, rows.slice(0, count));
    for (const [index, view] of views.entries()) {
      intents.push(view);
      after = { value: rows[index]![column], id: rows[index]!.id };
      characters += JSON.stringify(view).length;
      if (characters > MAX_CHARACTERS || intents.length === limit) {
        return { intents, nextCursor: index + 1 < rows.length ? `${after.value}.${after.id}` : null };
      }
    }
    if (rows.length <= count) return { intents, nextCursor: null };
    await nextTurn();
  }

  function rowsThatFit(): number {
    return Math.max(1, Math.floor((MAX_CHARACTERS - characters) / (characters / intents.length)));
  }
}

type IntentQuery = ReturnType<typeof visibleIntents>;

interface Place {
  readonly value: number;
  readonly id: string;
}

interface Page {
  readonly order: IntentOrder;
  readonly after: Place | undefined;
  readonly limit: number;
  readonly status: IntentStatus | undefined;
}

async function pageOf(context: ListContext, query: IntentQuery, page: Page): Promise<IntentRow[]> {
  const { column, direction } = orders[page.order];
  const pages = await Promise.all(
    byStatus(query, page.status, context.nowMs).map((one) => ordered(one, page).execute()),
  );
  if (pages.length === 1) return pages[0]!;
  const sign = direction === 'asc' ? 1 : -1;
  const place = (row: IntentRow) => row[column];
  return pages
    .flat()
    .sort((a, b) => sign * (place(a) - place(b) || (a.id < b.id ? -1 : 1)))
    .slice(0, page.limit);
}

/**
 * Narrows a query to a status. Expired intents are those stored as expired and those still stored as pending; each set
 * has its own index and gets its own query.
 */
function byStatus(query: IntentQuery, status: IntentStatus | undefined, nowMs: number): IntentQuery[] {
  if (status === undefined) return [query];
  const asWritten = query.where('status', '=', status);
  if (status === 'pending') return [asWritten.where('expires_at_ms', '>=', nowMs)];
  if (status !== 'expired') return [asWritten];
  return [asWritten, query.where('status', '=', 'pending').where('expires_at_ms', '<', nowMs)];
}

function ordered(query: IntentQuery, { order, after, limit }: Page): IntentQuery {
  const { column, direction, beyond } = orders[order];
  // A row value comparison, for which both databases use the index.
  const rest =
    after === undefined
      ? query
      : query.where(sql<boolean>`(${sql.ref(column)}, id) ${beyond} (${after.value}, ${after.id})`);
  return rest.orderBy(column, direction).orderBy('id', direction).limit(limit);
}

async function filtered(context: ListContext, filter: IntentFilter): Promise<IntentQuery> {
  const { intentType, resourceId, createdById, pendingMemberId } = filter;
  let query = visibleIntents(context);
  if (intentType !== undefined) query = query.where('intent_type', '=', intentType);
  if (resourceId !== undefined) query = query.where('resource_id', '=', lookupKey(resourceId));
  if (createdById !== undefined) query = query.where('created_by_id', '=', lookupKey(createdById));
  if (filter.currentUserHasSigned !== undefined) {
    query = whereSigned(context, query, filter.currentUserHasSigned);
  }
  return pendingMemberId === undefined ? query : whereStillAsked(context, query, readMember(pendingMemberId));
}

function whereSigned({ em, proof: { userId } }: ListContext, query: IntentQuery, hasSigned: boolean) {
  if (userId === undefined) {
    throw invalidQuery('current_user_has_signed', "expected a user's access token instead of the app secret");
  }
  const signed = signedBy(em, { kind: 'user', member: userId });
  return query.where('id', hasSigned ? 'in' : 'not in', signed);
}

function signedBy(em: ListContext['em'], { kind, member }: Member) {
  return em
    .getKysely<Tables>()
    .selectFrom('intent_signatures')
    .select('intent_id')
    .where('member', '=', member)
    .where('kind', '=', kind);
}

/**
 * Selects the intents that a user need not sign again: those that the user signed with an unexpired key, and those for
 * which every key quorum with this user, including nested key quorums, counts expired keys as well (see
 * `countsInAgreement`).
 */
function signedForNow({ em, nowMs }: ListContext, user: Member) {
  const isPinned = sql<boolean>`exists (
    select 1 from intent_parties as party join key_quorums as own on own.voucher is not null and (
        own.id = party.key_quorum_id or own.id in (
          select nested.member from key_quorum_members as nested
            where nested.key_quorum_id = party.key_quorum_id and nested.kind = 'key_quorum'))
      join key_quorum_members as place on place.key_quorum_id = own.id
        and place.member = ${user.member} and place.kind = 'user'
      where party.intent_id = intent_signatures.intent_id)`;
  return signedBy(em, user).where(sql<boolean>`(${isLive('intent_signatures', nowMs)} or not ${isPinned})`);
}

/** Returns an SQL condition: the key of the signature has not expired. */
function isLive(signature: string, nowMs: number) {
  const [member, publicKey] = [sql.ref(`${signature}.member`), sql.ref(`${signature}.public_key`)];
  return sql<boolean>`exists (
    select 1 from user_keys where user_keys.user_id = ${member}
      and user_keys.public_key = ${publicKey} and user_keys.expires_at_ms > ${nowMs})`;
}

/**
 * Narrows a query to the pending intents that the member has not signed and may authorize, alone or as a member of a
 * party.
 */
async function whereStillAsked(
  context: ListContext,
  query: IntentQuery,
  member: Member,
): Promise<IntentQuery> {
  const database = context.em.getKysely<Tables>();
  const asked = database
    .selectFrom('intent_parties')
    .select('intent_id')
    .where(({ eb, or }) =>
      or([
        eb('key_quorum_id', 'in', membershipsOf(database, member)),
        ...(member.kind === 'key_quorum' ? [eb('key_quorum_id', '=', member.member)] : []),
      ]),
    );
  const pending = query
    .where('status', '=', 'pending')
    .where('expires_at_ms', '>=', context.nowMs)
    .where('id', 'in', asked);
  if (member.kind === 'public_key') return pending.where('id', 'not in', signedBy(context.em, member));
  if (member.kind === 'user') return pending.where('id', 'not in', signedForNow(context, member));
  return whereQuorumLacks(context, pending, member.member);
}

/**
 * Narrows a query to the pending intents whose threshold in this key quorum is not reached. A key quorum with nested
 * quorums cannot itself be a member, so the threshold of its own intents is never reached while they are pending.
 */
async function whereQuorumLacks(context: ListContext, query: IntentQuery, id: string): Promise<IntentQuery> {
  const [quorum] = await listKeyQuorumsOfIds(context, [id]);
  if (quorum === undefined || quorum.keyQuorumIds.length > 0) return query;
  const threshold = quorum.threshold ?? quorum.publicKeys.length + quorum.userIds.length;
  const agreed = context.em
    .getKysely<Tables>()
    .selectFrom('intent_signatures as signature')
    .innerJoin('key_quorum_members as row', (join) =>
      join.onRef('row.member', '=', 'signature.member').onRef('row.kind', '=', 'signature.kind'),
    )
    .innerJoin('key_quorums as own', 'own.id', 'row.key_quorum_id')
    .select('signature.intent_id')
    .where('row.key_quorum_id', '=', id)
    .where(({ eb, or }) =>
      or([
        eb('signature.kind', '<>', 'user'),
        eb('own.voucher', 'is', null),
        isLive('signature', context.nowMs),
      ]),
    )
    .groupBy('signature.intent_id')
    .having(({ fn }) => fn.countAll<number>(), '>=', threshold);
  return query.where('id', 'not in', agreed);
}

const QUORUM_ID = /^[a-z][0-9a-z]{23}$/;

function readMember(id: string): Member {
  if (id.startsWith('did:')) return { kind: 'user', member: lookupKey(id) };
  if (QUORUM_ID.test(id)) return { kind: 'key_quorum', member: id };
  try {
    return { kind: 'public_key', member: parseP256PublicKey(id) };
  } catch (error) {
    if (!(error instanceof InvalidPublicKeyError)) throw error;
    throw invalidQuery('pending_member_id', 'expected a user id, a P-256 public key or a key quorum id');
  }
}

// CHOICE: the cursor contains the sort position instead of a row id. Paging by update time then continues correctly
// after that row changes again.
function readCursor(cursor: string): Place {
  const [, value, id] = /^([0-9]{1,15})\.([0-9a-z]{1,32})$/.exec(cursor) ?? [];
  if (value === undefined || id === undefined) {
    throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  }
  return { value: Number(value), id };
}
