import { systemClock } from '../../adapters/runtime.ts';
import type { DatabaseConfig } from '../../config/config.ts';
import { StartError } from '../../config/start-error.ts';
import {
  deleteRecordsBelow,
  dropRecordsBelow,
  firstRecordSince,
  writeRecord,
} from '../../domain/base/audit/audit-log.ts';
import { TILE_WIDTH } from '../../engine/crypto/tlog/tiles.ts';
import { inUnitOf, unitsOf } from '../../server/unit-of-work.ts';
import { isLockTimeout } from '../../storage/database-errors.ts';
import type { Database } from '../../storage/open-database.ts';
import { commandLine, requireMigrated, withDatabase } from '../administration.ts';
import { exportFrom } from './export-log.ts';
import { verifyLog } from './verify-log.ts';

/** The log in the database after a trim. */
export interface Trimmed {
  readonly size: number;
  /** The index of the first record in the database. Earlier records are only in the export. */
  readonly kept_from: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

interface TrimOptions {
  /** The time before which records are deleted, in Unix ms. */
  readonly beforeMs: number;
  readonly nowMs: number;
}

/**
 * Exports the log, verifies the export, and deletes old records from the database. Tiles, checkpoints and keys stay.
 * Later exports to the same folder can therefore continue the log, and the export proves the deleted records.
 *
 * @param keepDays records that are younger stay.
 * @throws StartError when the log cannot be exported, or when the export differs from the log. Nothing is deleted then.
 */
export function trimLog(config: DatabaseConfig, folder: string, keepDays: number): Promise<Trimmed> {
  const nowMs = systemClock.now();
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    return trimTo(database, folder, { beforeMs: nowMs - keepDays * DAY_MS, nowMs });
  });
}

/** Works like `trimLog`, on an open database. */
export async function trimTo(
  { orm }: Pick<Database, 'orm'>,
  folder: string,
  { beforeMs, nowMs }: TrimOptions,
): Promise<Trimmed> {
  const inUnit = inUnitOf(unitsOf({ orm }));
  const { size, verifier_key: key } = await exportFrom(orm.em.fork(), folder);
  const { faults } = await verifyLog(folder, { key });
  if (faults[0] !== undefined)
    throw new StartError(`the export is not the log, nothing was deleted: ${faults[0]}`);
  const first = await firstRecordSince(orm.em.fork(), beforeMs, size);
  // The next export writes the incomplete bundle again, from the records in the database.
  const keptFrom = Math.floor(first / TILE_WIDTH) * TILE_WIDTH;
  await inUnit((em, notes) =>
    writeRecord(
      { em, notes },
      {
        ...{ atMs: nowMs, appId: null, by: { kind: 'operator', ...commandLine }, operation: 'trimAuditLog' },
        ...{ ids: { kept_from: String(keptFrom) }, decision: 'allow' },
      },
    ),
  );
  while (await inUnit((em) => dropRecordsBelow(em, keptFrom)).catch(whileInUse));
  while ((await inUnit((em) => deleteRecordsBelow(em, keptFrom))) > 0);
  return { size, kept_from: keptFrom };
}

/**
 * Returns false if the partition could not be dropped because queries use it. Its records are then deleted one by one.
 * Throws any other error.
 */
function whileInUse(error: unknown): false {
  if (isLockTimeout(error)) return false;
  throw error;
}
