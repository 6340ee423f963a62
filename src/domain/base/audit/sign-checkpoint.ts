import type { SqlEntityManager } from '@mikro-orm/sql';
import { checkpointText } from '../../../crypto/tlog/checkpoint.ts';
import type { KeyVault } from '../../../ports/key-vault.ts';
import { AuditCheckpointEntity } from './audit-checkpoint.entity.ts';
import { signNote } from './audit-keys.ts';
import { continuesLog, type SeenLog } from './lost-changes.ts';

interface SigningContext {
  readonly vault: KeyVault;
  /** Reads outside any transaction. */
  readonly em: SqlEntityManager;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** The log in the database does not begin with what this process has seen of it. */
class RewrittenLogError extends Error {
  constructor({ size }: SeenLog) {
    super(
      `the first ${size} records of the audit log were changed in the database; its checkpoint is not signed`,
    );
    this.name = 'RewrittenLogError';
  }
}

/**
 * Signs the newest checkpoint unless it is signed. Between transactions: the key may be kept by another system. Two
 * processes that do it at the same time write the same note, because Ed25519 is deterministic.
 *
 * @param seen what this process has seen before: a log that does not continue it is not signed, so that rewriting the
 * tables of a running server does not give a valid log.
 * @returns the newest checkpoint, signed now or before; undefined without one.
 * @throws RewrittenLogError
 */
export async function signCheckpoint(
  { vault, em, inUnit }: SigningContext,
  seen?: SeenLog,
): Promise<SeenLog | undefined> {
  const [newest] = await em.find(AuditCheckpointEntity, {}, { orderBy: { size: 'desc' }, limit: 1 });
  if (newest === undefined) {
    if (seen !== undefined) throw new RewrittenLogError(seen);
    return undefined;
  }
  const { size, root } = newest;
  if (seen !== undefined && !(await continuesLog(em, seen, newest))) throw new RewrittenLogError(seen);
  if (newest.note !== null) return { size, root };
  const note = await signNote({ em, vault }, (origin) =>
    checkpointText({ origin, size, root: Buffer.from(root, 'base64') }),
  );
  await inUnit((unit) => unit.nativeUpdate(AuditCheckpointEntity, { size }, { note }));
  return { size, root };
}

/** The newest signed checkpoint, as a note. */
export async function getSignedCheckpoint(em: SqlEntityManager): Promise<string | undefined> {
  const [newest] = await em.find(
    AuditCheckpointEntity,
    { note: { $ne: null } },
    { orderBy: { size: 'desc' }, limit: 1 },
  );
  return newest?.note ?? undefined;
}

/** CHOICE: checkpoints are kept for a week. Any older one is proved against a newer one from the tiles. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

/** Deletes old checkpoints, except the newest; returns how many. */
export async function dropOldCheckpoints(em: SqlEntityManager, nowMs: number): Promise<number> {
  const [newest] = await em.find(AuditCheckpointEntity, {}, { orderBy: { size: 'desc' }, limit: 1 });
  if (newest === undefined) return 0;
  return em.nativeDelete(AuditCheckpointEntity, {
    size: { $lt: newest.size },
    createdAtMs: { $lt: nowMs - KEPT_MS },
  });
}
