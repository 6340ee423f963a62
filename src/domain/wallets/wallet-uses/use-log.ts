import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { UseLog, UseRecord } from '../../../ports/requests.ts';
import { insertionOfMany, standApart } from '../../../storage/prepared-statements.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { UseVolumeEntity } from './wallet-use.entity.ts';

// HOT: runs for every signature (bench `stored`, `policy`).

/**
 * CHOICE: the requests and traces of an app's uses are stored in full up to this size per day, and as digests beyond
 * it. It is enough for 100,000 requests of 2 KB. Without a limit, an app could fill the disk within hours.
 */
export const MAX_BYTES_PER_DAY = 256 * 1024 * 1024;

const DAY_MS = 24 * 60 * 60 * 1000;

/** The strings that a use would store. */
interface Stored {
  readonly appId: string;
  readonly judgedAtMs: number;
  /** JSON strings; null where there is none. */
  readonly texts: readonly (string | null)[];
}

/**
 * Adds the sizes of uses to the app's count of the day, and returns for each use whether it is stored in full. Locks
 * the count until the transaction ends.
 */
export async function admitUses(em: SqlEntityManager, uses: readonly Stored[]): Promise<boolean[]> {
  const sizes = uses.map(sizeOf);
  const groups = new Map<string, { appId: string; day: number; indices: number[] }>();
  for (const [index, { appId, judgedAtMs }] of uses.entries()) {
    const day = Math.floor(judgedAtMs / DAY_MS);
    const group = groups.get(`${appId} ${day}`) ?? { appId, day, indices: [] };
    group.indices.push(index);
    groups.set(`${appId} ${day}`, group);
  }
  const isKept = uses.map(() => false);
  // Counts are locked in a fixed order, so that two batches cannot deadlock.
  for (const [, { appId, day, indices }] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const added = indices.reduce((sum, index) => sum + sizes[index]!, 0);
    let used = (await addBytes(em, { appId, day, added })) - added;
    for (const index of indices) {
      used += sizes[index]!;
      isKept[index] = used <= MAX_BYTES_PER_DAY;
    }
  }
  return isKept;
}

/** Returns the form in which a string beyond the limit is stored: its hex SHA-256. */
export function digestOf(text: string | null): string | null {
  return text === null ? null : hash('sha256', text);
}

function sizeOf({ texts }: Stored): number {
  return texts.reduce((sum, text) => sum + (text === null ? 0 : Buffer.byteLength(text)), 0);
}

async function addBytes(
  em: SqlEntityManager,
  { appId, day, added }: { appId: string; day: number; added: number },
): Promise<number> {
  const { bytes } = await em
    .getKysely<Tables>()
    .insertInto('use_volumes')
    .values({ app_id: appId, day, bytes: added })
    .onConflict((conflict) =>
      conflict.columns(['app_id', 'day']).doUpdateSet(({ eb }) => ({
        bytes: eb('use_volumes.bytes', '+', added),
      })),
    )
    .returning('bytes')
    .executeTakeFirstOrThrow();
  return Number(bytes);
}

/** Deletes the counts of all days but the last two. */
export async function dropOldVolumes(em: SqlEntityManager, nowMs: number): Promise<void> {
  const yesterday = Math.floor(nowMs / DAY_MS) - 1;
  await em.nativeDelete(UseVolumeEntity, { day: { $lt: yesterday } });
}

/** How long a record waits for more records to be stored with it, in ms of system time. */
const WAIT_MS = 100;
/** The limits of the queue. Above them, callers wait until their record is stored. */
const MAX_WAITING = { records: 5000, characters: 8_000_000 };

interface UseLogOptions extends Pick<OperationContext, 'inUnit' | 'log'> {
  /** Returns whether the rows of an app have been taken out of this database. Default: they never are. */
  readonly hasLeft?: ((appId: string) => boolean) | undefined;
  /** Returns the log of the database that has the app now; undefined if none is known to have it yet. */
  readonly findOther?: ((appId: string) => Promise<UseLog | undefined>) | undefined;
}

/**
 * Returns a log that stores the records of many requests in one transaction.
 *
 * CHOICE: the record of an allowed use is stored up to 100 ms after the response. In the request's own transaction, it
 * would turn read-only transactions into ones that are synced to disk, which made `personal_sign` twice as expensive. A
 * killed process loses the records of its last 100 ms; a stopped process loses none. Denials are stored before the
 * response.
 *
 * CHOICE: an app may have moved to another database before its records were stored, because the process was suspended.
 * The records belong to its wallets, so they are stored where the app is. They wait until it has arrived.
 */
export function createUseLog({ inUnit, log, hasLeft, findOther }: UseLogOptions): UseLog {
  let waiting: UseRecord[] = [];
  let waitingCharacters = 0;
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<void> = Promise.resolve();

  const store = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.length === 0) return;
    let batch = waiting;
    waiting = [];
    waitingCharacters = 0;
    try {
      const moved = hasLeft === undefined ? [] : batch.filter(({ appId }) => hasLeft(appId));
      if (moved.length > 0) {
        const late = await handOver(moved);
        batch = batch.filter((record) => !moved.includes(record));
        putBack(late);
      }
      if (batch.length > 0) await inUnit((em) => insertUses(em, batch));
    } catch (error) {
      // The records of a failed batch are stored again, together with newer records.
      putBack(batch);
      throw error;
    }
  };
  const putBack = (records: readonly UseRecord[]): void => {
    if (records.length === 0) return;
    waiting = [...records, ...waiting];
    waitingCharacters = waiting.reduce((sum, record) => sum + lengthOf(record), 0);
    wait();
  };
  /** Adds records to the logs of the databases that have their apps. Returns the records that must wait. */
  const handOver = async (records: readonly UseRecord[]): Promise<UseRecord[]> => {
    const late: UseRecord[] = [];
    for (const [appId, ofApp] of Map.groupBy(records, (record) => record.appId)) {
      const other = await findOther?.(appId).catch(() => undefined);
      if (other === undefined) late.push(...ofApp);
      // A full log keeps a record although it rejects.
      else for (const record of ofApp) await other.add(record).catch(() => undefined);
    }
    return late;
  };
  const flush = (): Promise<void> => {
    // Batches are stored one after the other, so a flush waits for all earlier records.
    const next = last.then(store);
    last = next.catch(() => undefined);
    return next;
  };
  const wait = (): void => {
    timer ??= setTimeout(() => {
      flush().catch((err: unknown) => log.error({ err }, 'failed to record uses of wallets; will retry'));
    }, WAIT_MS).unref();
  };
  return {
    async add(record) {
      waiting.push(record);
      waitingCharacters += lengthOf(record);
      const isFull = waiting.length > MAX_WAITING.records || waitingCharacters > MAX_WAITING.characters;
      if (isFull) await flush();
      else wait();
    },
    flush,
  };
}

function lengthOf({ request }: UseRecord): number {
  return request?.length ?? 0;
}

/** The possible numbers of rows per statement, largest first. With only three sizes, few statements are prepared. */
const SIZES = [64, 8, 1] as const;

const members = [
  ['app_id', 'appId'],
  ['wallet_id', 'walletId'],
  ['operation', 'operation'],
  ['method', 'method'],
  ['request_id', 'requestId'],
  ['judged_at_ms', 'judgedAtMs'],
  ['policy_ids', 'policyIds'],
  ['request', 'request'],
  ['request_digest', 'requestDigest'],
] as const;

/** The values of all rows as one list, in the order of the statement's parameters. */
type FlatRows = Readonly<Record<number, string | number | null>>;

const inserts = SIZES.map((size) => ({
  size,
  insert: prepareQuery<FlatRows>((database, flat) => {
    const rows = Array.from({ length: size }, (_, row) => rowOf(flat, row));
    return insertionOfMany(
      database,
      database
        .insertInto('wallet_uses')
        .columns([...members.map(([column]) => column), 'decision'])
        .expression(sql`values ${sql.join(rows)}`),
    );
  }),
}));

function rowOf(flat: FlatRows, row: number) {
  const values = members.map((_, index) => flat[row * members.length + index]);
  return sql`(${sql.join([...values, 'allowed'])})`;
}

async function insertUses(em: SqlEntityManager, uses: readonly UseRecord[]): Promise<void> {
  standApart(em);
  const isKept = await admitUses(
    em,
    uses.map(({ appId, judgedAtMs, request }) => ({ appId, judgedAtMs, texts: [request] })),
  );
  const records = uses.map((record, index) => ({
    ...record,
    request: isKept[index] ? record.request : null,
    requestDigest: isKept[index] ? null : digestOf(record.request),
  }));
  let at = 0;
  for (const { size, insert } of inserts) {
    for (; records.length - at >= size; at += size) {
      const values = records
        .slice(at, at + size)
        .flatMap((record) => members.map(([, member]) => record[member]));
      await insert(em, values);
    }
  }
}
