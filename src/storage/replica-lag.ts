import type { Database } from './open-database.ts';

/** How often the positions of primary and replica are compared. */
const EVERY_MS = 250;
/** Positions of the primary that are remembered: a replica further behind is not used anyway. */
const REMEMBERED = 40;

/** How far a streaming replica of PostgreSQL is behind. */
export interface ReplicaLag {
  /** How old what it shows can be, ms; Infinity when that is unknown, because it or the primary cannot be asked. */
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
  /** Monotonic, ms. */
  readonly now: () => number;
  /** Called when the replica can be used again, and when it cannot any more. */
  readonly onChange: (isKnown: boolean) => void;
}

/**
 * Compares the positions of a replica and its primary. Times of transactions are not compared: a replica that replays
 * nothing because nothing is written is not behind.
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
      // A replica that was promoted is another primary: it shows what was never written here.
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
  // 64 bits, as two hexadecimal numbers of 32.
  return { lsn: (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`), cluster: row.cluster };
}
