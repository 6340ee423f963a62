import type { Pool, PoolClient } from 'pg';

/** A backend of PostgreSQL that is at work for us. */
interface ActiveBackend {
  readonly pid: number;
  /** Whether its commit waits for a synchronous standby for longer than one that is there takes. */
  readonly waits: boolean;
}

export interface HungOptions {
  readonly pool: Pool;
  /** Asks PostgreSQL beside the pool, within a limit of its own. Default: a silent connection is destroyed at once. */
  readonly ask: (<Row>(sql: string) => Promise<readonly Row[]>) | undefined;
  /** Whether the ids of our connections are not those of backends, as through PgBouncer. */
  readonly isPooledByTransaction: boolean;
}

/** The connections of a pool that were given up because they were silent, and whose backends are still at work. */
export interface HungConnections {
  /** Gives up a connection that was silent for too long. It returns to the pool when its backend has ended its work. */
  giveUp(client: PoolClient, error: Error): void;
  /** A connection for a change. Rejects if only those are left that are kept for reads. */
  connect(): Promise<PoolClient>;
  count(): number;
  /** Destroys them all. */
  close(): void;
}

/**
 * CHOICE: while connections hang, changes leave two for reads, as many as the admission of requests does. A change then
 * would most likely hang as well.
 */
const SPARED_CONNECTIONS = 2;
const EVERY_MS = 1_000;

const activeBackends = `
select pid, wait_event = 'SyncRep' and state_change < clock_timestamp() - interval '200 milliseconds' as waits
from pg_stat_activity
where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`;

/**
 * Keeps the place of a silent connection in the pool for as long as PostgreSQL works for it. A commit that waits for a
 * synchronous standby does not notice that its client is gone: if each attempt opened another connection, they would use
 * up `max_connections`, and nobody could connect any more.
 *
 * INVARIANT: nothing here cancels a statement or ends a backend. Either would commit what the standby has not received.
 */
export function keepHung({ pool, ask, isPooledByTransaction }: HungOptions): HungConnections {
  const kept = new Map<PoolClient, { isJudged: boolean; free(): void }>();
  let looking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function look(): Promise<void> {
    const judged = [...kept];
    const active = await ask!<ActiveBackend>(activeBackends).catch(() => undefined);
    for (const [client, connection] of judged) {
      connection.isJudged = true;
      // While nobody can be asked, as when all connections are used up, nothing is known to have ended.
      if (active !== undefined && !isAtWork(client, active)) connection.free();
    }
  }
  function isAtWork(client: PoolClient, active: readonly ActiveBackend[]): boolean {
    if (isPooledByTransaction) return active.some(({ waits }) => waits);
    return active.some(({ pid }) => pid === (client as { processID?: number | null }).processID);
  }
  const lookOnce = (): Promise<void> => {
    clearTimeout(timer);
    looking ??= look().finally(() => {
      looking = undefined;
      if (kept.size === 0) return;
      timer = setTimeout(() => void lookOnce(), hasUnjudged() ? 0 : EVERY_MS).unref();
    });
    return looking;
  };
  const hasUnjudged = (): boolean => [...kept.values()].some(({ isJudged }) => !isJudged);
  const isShort = (): boolean =>
    kept.size > 0 && pool.totalCount - pool.idleCount >= (pool.options.max ?? 1) - SPARED_CONNECTIONS;

  return {
    giveUp(client, error) {
      if (ask === undefined || isClosed) return client.release(error);
      const free = (): void => {
        if (!kept.delete(client)) return;
        client.off('drain', free).off('end', free);
        client.release(error);
      };
      kept.set(client, { isJudged: false, free });
      // The answer has come after all, or the connection has ended.
      client.once('drain', free).once('end', free);
      void lookOnce();
    },
    async connect() {
      // The question that is under way may be older than the last connection that was given up.
      for (let round = 0; round < 2 && isShort() && hasUnjudged(); round += 1) await lookOnce();
      if (isShort()) throw noneForChanges(kept.size);
      return pool.connect();
    },
    count: () => kept.size,
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const { free } of [...kept.values()]) free();
    },
  };
}

/** As PostgreSQL answers when it has no connections left. */
function noneForChanges(hung: number): Error {
  const message = `no connection is left for changes: ${hung} wait for PostgreSQL, maybe for its synchronous standby`;
  return Object.assign(new Error(message), { code: '53300', severity: 'ERROR' });
}
