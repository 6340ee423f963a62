import type { SqlEntityManager } from '@mikro-orm/sql';
import { checkpointText } from '../../../crypto/tlog/checkpoint.ts';
import type { KeyVault } from '../../../ports/key-vault.ts';
import { AuditCheckpointEntity } from './audit-checkpoint.entity.ts';
import { signNote } from './audit-keys.ts';

interface SigningContext {
  readonly vault: KeyVault;
  /** Reads outside any transaction. */
  readonly em: SqlEntityManager;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/**
 * Signs the newest checkpoint unless it is signed. Between transactions: the key may be kept by another system. Two
 * processes that do it at the same time write the same note, because Ed25519 is deterministic.
 *
 * Result: whether there was one to sign.
 */
export async function signCheckpoint({ vault, em, inUnit }: SigningContext): Promise<boolean> {
  const [newest] = await em.find(AuditCheckpointEntity, {}, { orderBy: { size: 'desc' }, limit: 1 });
  if (newest === undefined || newest.note !== null) return false;
  const { size, root } = newest;
  const note = await signNote({ em, vault }, (origin) =>
    checkpointText({ origin, size, root: Buffer.from(root, 'base64') }),
  );
  await inUnit((unit) => unit.nativeUpdate(AuditCheckpointEntity, { size }, { note }));
  return true;
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
