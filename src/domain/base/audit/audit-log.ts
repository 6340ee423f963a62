import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { MAX_ENTRY_BYTES } from '../../../engine/crypto/tlog/tiles.ts';
import { ApiError, isUnavailable } from '../../../errors.ts';
import type { AuditActor, AuditRecord, AuditTrail } from '../../../ports/audit.ts';
import type { KeyStore } from '../../../ports/key-store.ts';
import type { UnitContext } from '../../../ports/operation-context.ts';
import type { Entropy } from '../../../ports/runtime.ts';
import { isDatabaseCollision, isSchemaLost } from '../../../storage/database-errors.ts';
import { certainInsertionWithId, insertedId } from '../../../storage/prepared-statements.ts';
import { dropPartition, type PartitionedTable, partitionsOf } from '../../../storage/schema/partitions.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { ensureAuditKeys, openDigestKey } from './audit-keys.ts';

// HOT: runs for every request that changes something (bench `audit`).

interface Row {
  readonly app_id: string | null;
  readonly origin: string | null;
  readonly recorded_at_ms: number;
  readonly entry: string;
}

const insertRow = prepareQuery<Row, { id: number }>((database, row) =>
  certainInsertionWithId(
    database,
    database.insertInto('audit_pending').values({
      app_id: row.app_id,
      origin: row.origin,
      recorded_at_ms: row.recorded_at_ms,
      entry: row.entry,
    }),
  ),
);

/**
 * Writes a record in the transaction of the change that it describes. The sequencer places it in the log later.
 *
 * @throws ApiError unavailable when the record cannot be written. The change must then not happen.
 */
export async function writeRecord(
  { em, notes }: UnitContext,
  record: AuditRecord,
  options?: { readonly isLast?: boolean },
): Promise<void> {
  const row = {
    app_id: record.appId,
    origin: record.by.origin ?? null,
    recorded_at_ms: record.atMs,
    entry: entryOf(record),
  };
  // A longer entry could not be exported.
  if (Buffer.byteLength(row.entry) > MAX_ENTRY_BYTES) {
    throw new ApiError('unavailable', 'the audit log cannot be written', {
      cause: new Error('a record is too long'),
    });
  }
  try {
    const inserted = await insertRow(em, row, { commits: options?.isLast === true });
    notes.lastRecord = { pendingId: insertedId(inserted), recordedAtMs: record.atMs };
  } catch (error) {
    if (isDatabaseCollision(error) || (isUnavailable(error) && !isSchemaLost(error))) throw error;
    throw new ApiError('unavailable', 'the audit log cannot be written', {
      cause: error,
      headers: { 'retry-after': '2' },
    });
  }
}

/**
 * Returns the leaf of the log: one JSON object in its canonical form.
 *
 * INVARIANT: the members are in the order of RFC 8785 and absent members are undefined, so that `JSON.stringify` writes
 * the canonical form. Sorting the members would take five times as long.
 */
function entryOf(record: AuditRecord): string {
  return JSON.stringify({
    app_id: record.appId ?? undefined,
    at_ms: record.atMs,
    by: actorOf(record.by),
    changes: record.changes,
    code: record.code,
    decision: record.decision,
    ids: sorted(record.ids),
    omitted: record.omitted,
    operation: record.operation,
    phase: record.phase,
    request: record.request,
    request_id: record.requestId,
    status: record.status,
    version: 1,
  });
}

function actorOf(by: AuditActor): object {
  return {
    app_id: by.appId,
    claimed_app_id: by.claimedAppId,
    job: by.job,
    kind: by.kind,
    operator_id: by.operatorId,
    origin: by.origin,
    role: by.role,
    session_id: by.sessionId,
    signers: by.signers,
    user_id: by.userId,
  };
}

function sorted<Value>(ids: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  const names = Object.keys(ids);
  if (names.length < 2) return ids;
  return Object.fromEntries(names.sort().map((name) => [name, ids[name]!]));
}

interface TrailOptions {
  readonly keyStore: KeyStore;
  readonly entropy: Entropy;
  /** Reads outside any transaction. */
  reader(): SqlEntityManager;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

export interface StoredAuditTrail extends AuditTrail {
  /**
   * Reads the keys of the log, or creates them. Call it before the first record, and after the database was replaced.
   */
  open(): Promise<void>;
}

export function createAuditTrail({ keyStore, entropy, reader, inUnit }: TrailOptions): StoredAuditTrail {
  let key: KeyObject | undefined;
  return {
    async open() {
      await ensureAuditKeys({ em: reader(), keyStore, entropy, inUnit });
      const bytes = await openDigestKey({ em: reader(), keyStore });
      // NOTE: an HMAC with a raw key takes four times as long as with an imported key.
      key = createSecretKey(bytes);
      bytes.fill(0);
    },
    record: writeRecord,
    digest(method, target, body) {
      if (key === undefined) throw new Error('the audit log is not open');
      // HMAC-SHA-256(method || 0x0A || target || 0x0A || body)
      return createHmac('sha256', key).update(`${method}\n${target}\n`).update(body).digest('base64');
    },
  };
}

// KYSELY: bounded deletions by subquery. Tiles, checkpoints and keys stay, so an export can still prove trimmed
// records.

/** The table of records. It has no expiry: only an operator's command drops records, after they were exported. */
export const partitionedRecords: PartitionedTable = {
  table: 'audit_records',
  key: 'leaf_index',
  time: 'recorded_at_ms',
};

const DELETED_AT_ONCE = 10_000;

/**
 * Finds the index of the first record that is not older than `beforeMs`; the number of all records if there is none.
 * Uses a binary search: times increase with the index, except where concurrent transactions ended in another order.
 *
 * @param size the number of records in the log.
 */
export async function firstRecordSince(
  em: SqlEntityManager,
  beforeMs: number,
  size: number,
): Promise<number> {
  let [begin, end] = [await firstKept(em, size), size];
  while (begin < end) {
    const middle = Math.floor((begin + end) / 2);
    const row = await em
      .getKysely<Tables>()
      .selectFrom('audit_records')
      .select('recorded_at_ms')
      .where('leaf_index', '=', middle)
      .executeTakeFirstOrThrow();
    if (row.recorded_at_ms < beforeMs) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/** Finds the index of the first record that was not trimmed; `size` if all were trimmed. */
async function firstKept(em: SqlEntityManager, size: number): Promise<number> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('audit_records')
    .select('leaf_index')
    .orderBy('leaf_index')
    .limit(1)
    .executeTakeFirst();
  return row?.leaf_index ?? size;
}

/** Drops the oldest partition if all of its records are below an index. Returns whether it dropped one. */
export async function dropRecordsBelow(em: SqlEntityManager, below: number): Promise<boolean> {
  const [oldest] = await partitionsOf(em, partitionedRecords.table);
  if (oldest === undefined || oldest.to > below) return false;
  return dropPartition(em, oldest, sql<boolean>`false`);
}

/** Deletes a limited number of records below an index, and returns how many. */
export async function deleteRecordsBelow(em: SqlEntityManager, below: number): Promise<number> {
  const database = em.getKysely<Tables>();
  const oldest = database
    .selectFrom('audit_records')
    .select('leaf_index')
    .where('leaf_index', '<', below)
    .orderBy('leaf_index')
    .limit(DELETED_AT_ONCE);
  const { numDeletedRows } = await database
    .deleteFrom('audit_records')
    .where('leaf_index', 'in', oldest)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
