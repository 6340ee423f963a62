import type { Database } from './open-database.ts';

/** The interval at which the positions of primary and replica are compared. */
const EVERY_MS = 250;
/** The maximum number of the primary's positions that are kept. A replica that is further behind is not used anyway. */
const REMEMBERED = 40;

/** The lag of a streaming replica of PostgreSQL. */
export interface ReplicaLag {
  /**
   * Returns the maximum age of the replica's data, ms. Infinity while it is unknown, because the replica or the primary
   * cannot be reached.
   */
  readonly lagMs: () => number;
  close(): Promise<void>;
}

interface Position {
  readonly lsn: bigint;
  readonly atMs: number;
}

interface Watched {
  readonly primary: Pick<Database, 'orm'>;
  readonly replica: Pick<Database, 'orm'>;
  /** Returns the time of a monotonic clock, ms. */
  readonly now: () => number;
  /** Called when the replica becomes usable, and when it stops being usable. */
  readonly onChange: (isKnown: boolean) => void;
}

/**
 * Watches the lag of a replica by comparing the positions of primary and replica in the log. The times of transactions
 * cannot measure the lag: while nothing is written, the last replayed transaction grows old although the replica is up
 * to date.
 */
export function watchReplica({ primary, replica, now, onChange }: Watched): ReplicaLag {
  const positions: Position[] = [];
  let shownAtMs = Number.NEGATIVE_INFINITY;
  let isKnown = false;
  let isClosed = false;
  const compare = async (): Promise<void> => {
    const atMs = now();
    const [written, replayed] = await Promise.all([
      positionOf(primary, 'case when pg_is_in_recovery() then null else pg_current_wal_lsn() end'),
      // A promoted replica is another primary. Its position says nothing about ours.
      positionOf(replica, 'case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end'),
    ]);
    if (written === undefined || replayed === undefined || written.cluster !== replayed.cluster) {
      throw new Error('not a replica of the primary');
    }
    positions.push({ lsn: written.lsn, atMs });
    if (positions.length > REMEMBERED) positions.shift();
    const shown = positions.findLast(({ lsn }) => lsn <= replayed.lsn);
    if (shown !== undefined) shownAtMs = shown.atMs;
  };
  const turn = async (): Promise<void> => {
    const succeeded = await compare().then(
      () => true,
      () => false,
    );
    if (!succeeded) [shownAtMs, positions.length] = [Number.NEGATIVE_INFINITY, 0];
    if (isKnown !== succeeded && !isClosed) onChange(succeeded);
    isKnown = succeeded;
  };
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<void> = Promise.resolve();
  const loop = (): void => {
    last = turn().then(() => {
      if (!isClosed) timer = setTimeout(loop, EVERY_MS).unref();
    });
  };
  loop();
  return {
    lagMs: () => now() - shownAtMs,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await last;
    },
  };
}

async function positionOf(
  { orm }: Pick<Database, 'orm'>,
  expression: string,
): Promise<{ readonly lsn: bigint; readonly cluster: string } | undefined> {
  const [row] = await orm.em
    .fork()
    .execute<{ lsn: string | null; cluster: string }[]>(
      `select (${expression})::text as lsn, (select system_identifier::text from pg_control_system()) || '/' || current_database() as cluster`,
    );
  if (row?.lsn == null) return undefined;
  const [high = '', low = ''] = row.lsn.split('/');
  // A position consists of two hexadecimal numbers of 32 bits.
  return { lsn: (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`), cluster: row.cluster };
}
