import type { Pool, PoolClient } from 'pg';

/** A backend of PostgreSQL that works for us. */
interface ActiveBackend {
  readonly pid: number;
  /** Whether its commit has waited for a synchronous standby for longer than a healthy standby takes. */
  readonly waits: boolean;
}

export interface HungOptions {
  readonly pool: Pool;
  /**
   * Queries PostgreSQL over another connection, with its own time limit. Default: a silent connection is destroyed at
   * once.
   */
  readonly ask: (<Row>(sql: string) => Promise<readonly Row[]>) | undefined;
  /** Whether the ids of our connections differ from those of the backends, as behind PgBouncer. */
  readonly isPooledByTransaction: boolean;
}

/** Connections of a pool that were given up because they were silent, while their backends still work. */
export interface HungConnections {
  /** Gives up a connection that was silent for too long. It leaves the pool when its backend has finished. */
  giveUp(client: PoolClient, error: Error): void;
  /** A connection for a change. Rejects if only the connections that are reserved for reads are left. */
  connect(): Promise<PoolClient>;
  count(): number;
  /** Destroys all of them. */
  close(): void;
}

/**
 * CHOICE: while connections hang, changes leave two connections for reads, as many as the admission of requests
 * reserves. A change would most likely hang as well.
 */
const SPARED_CONNECTIONS = 2;
const EVERY_MS = 1_000;

const activeBackends = `
select pid, wait_event = 'SyncRep' and state_change < clock_timestamp() - interval '200 milliseconds' as waits
from pg_stat_activity
where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`;

/**
 * Keeps the place of a silent connection in the pool for as long as PostgreSQL works for it. A commit that waits for a
 * synchronous standby does not notice that its client is gone. If each retry opened another connection, retries would
 * use up `max_connections`, and nobody could connect any more.
 *
 * INVARIANT: nothing here cancels a statement or ends a backend. Either would commit data that the standby has not
 * received.
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
      // Without a response, for example because all connections are used up, no backend counts as finished.
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
      // The response has arrived after all, or the connection has ended.
      client.once('drain', free).once('end', free);
      void lookOnce();
    },
    async connect() {
      // A running query may have started before the last connection was given up.
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

/** The error code of PostgreSQL when it has no connections left. */
function noneForChanges(hung: number): Error {
  const message = `no connection is left for changes: ${hung} wait for PostgreSQL, maybe for its synchronous standby`;
  return Object.assign(new Error(message), { code: '53300', severity: 'ERROR' });
}
