import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Tables } from '../../tables.ts';

// HOT: runs for every signature (bench `stored`, `policy`).

/**
 * CHOICE: the requests and traces of an app's uses are stored in full up to this size per day, and as digests beyond
 * it. Enough for 100,000 requests of 2 KB; without a limit, an app could fill the disk within hours.
 */
export const MAX_BYTES_PER_DAY = 256 * 1024 * 1024;

const DAY_MS = 24 * 60 * 60 * 1000;

/** The texts that a use would store. */
interface Stored {
  readonly appId: string;
  readonly judgedAtMs: number;
  /** JSON; null if absent. */
  readonly texts: readonly (string | null)[];
}

/**
 * Adds uses to the app's count of the day; returns for each whether it is stored in full. Locks the count until the
 * transaction ends.
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
  // Locked in a fixed order, so that two batches cannot deadlock.
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

/** The stored form of a text beyond the limit. */
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

/** Deletes the counts of earlier days than the last two. */
export async function dropOldVolumes(em: SqlEntityManager, nowMs: number): Promise<void> {
  const yesterday = Math.floor(nowMs / DAY_MS) - 1;
  await em.getKysely<Tables>().deleteFrom('use_volumes').where('day', '<', yesterday).execute();
}
