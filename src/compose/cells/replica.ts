import type { CellSettings } from '../../config/cells.ts';
import { entities } from '../../domain/tables.ts';
import type { Log } from '../../ports/runtime.ts';
import { createReplicaReads, type ReplicaReads } from '../../server/replica-reads.ts';
import { type OpenUnit, unitsOf } from '../../server/unit-of-work.ts';
import { type Database, openDatabase } from '../../storage/open-database.ts';
import { watchReplica } from '../../storage/replica-lag.ts';

/** A read replica of the database, from which lists are read. */
interface OpenedReplica {
  /**
   * Returns the rules for reading from the replica.
   *
   * @param primary opens units of work on the primary database.
   */
  readsBeside(primary: OpenUnit): ReplicaReads;
  close(): Promise<void>;
}

const now = (): number => performance.now();

/**
 * Opens the replica, or returns undefined if none is configured. The server starts without waiting for it, and reads
 * everything from the primary until the replica can be reached.
 */
export async function openReplica(
  { replicaUrl, poolSize }: Pick<CellSettings, 'replicaUrl' | 'poolSize'>,
  primary: Database,
  log: Log,
): Promise<OpenedReplica | undefined> {
  if (replicaUrl === undefined) return undefined;
  const replica = await openDatabase(entities, {
    kind: 'postgres',
    url: replicaUrl,
    poolSize,
    onConnectionError: (err) => log.warn({ err }, 'lost a connection to the replica'),
  });
  const lag = watchReplica({
    ...{ primary, replica, now },
    onChange: (isKnown) =>
      isKnown
        ? log.info({}, 'lists are read from the replica')
        : log.warn({}, 'the replica cannot be used; lists are read from the primary'),
  });
  return {
    readsBeside: (openPrimary) =>
      createReplicaReads({ primary: openPrimary, replica: unitsOf(replica), lagMs: lag.lagMs, now }),
    async close() {
      await lag.close();
      await replica.close();
    },
  };
}
