import { open, readFile, rename } from 'node:fs/promises';
import type { CheckpointKeeper, KeptCheckpoint } from '../ports/audit.ts';

interface Written {
  readonly checkpoint: string;
  readonly restored_at_ms: number | null;
}

/** Stores the last signed checkpoint in a file, which several processes on one machine may share. */
export function checkpointFile(path: string): CheckpointKeeper {
  let kept: KeptCheckpoint | undefined;
  const read = async (): Promise<KeptCheckpoint | undefined> => {
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    const { checkpoint, restored_at_ms: restoredAtMs } = JSON.parse(text) as Written;
    kept = { note: checkpoint, restoredAtMs };
    return kept;
  };
  return {
    read,
    async keep(checkpoint) {
      // INVARIANT: after a power failure, the file contains either the old or the new checkpoint.
      const temporary = `${path}.${process.pid}.tmp`;
      const written: Written = { checkpoint: checkpoint.note, restored_at_ms: checkpoint.restoredAtMs };
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writeFile(`${JSON.stringify(written)}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      if (kept !== undefined && kept.restoredAtMs !== checkpoint.restoredAtMs) {
        await rename(path, `${path}.before-${checkpoint.restoredAtMs}`).catch(() => undefined);
      }
      await rename(temporary, path);
      kept = checkpoint;
    },
  };
}
