import { randomUUID } from 'node:crypto';
import {
  copyFile,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';

/** A snapshot whose content stays available, even when another snapshot is stored under its name. */
interface TakenSnapshot {
  readonly content: Buffer;
  /**
   * The path of a file with this content, which can be moved to another place in the data folder. Undefined for
   * snapshots in memory.
   */
  readonly file: string | undefined;
  /** Call it when the snapshot is no longer needed. */
  release(): Promise<void>;
}

/** Stores a sandbox's snapshots as files with names. */
export interface SnapshotStore {
  /** Lists snapshots in alphabetical order. */
  list(): Promise<readonly { readonly name: string; readonly bytes: number }[]>;
  /** Reads a snapshot, at most its first `maxBytes` bytes. Returns undefined for an unknown name. */
  read(name: string, maxBytes?: number): Promise<Buffer | undefined>;
  /** Takes a whole snapshot for loading. Returns undefined for an unknown name. */
  take(name: string): Promise<TakenSnapshot | undefined>;
  /** Stores a snapshot, and replaces an existing one. */
  write(name: string, content: readonly Buffer[]): Promise<void>;
  /** Removes a snapshot. Returns false for an unknown name. */
  remove(name: string): Promise<boolean>;
}

const ENDING = '.snapshot';
const TAKEN = '.taken';

/** Returns the path of the snapshots in a sandbox's data folder. */
export function snapshotsOf(dataFolder: string): string {
  return join(dataFolder, 'snapshots');
}

/**
 * Stores snapshots as files that only this user can read, because they contain keys.
 *
 * NOTE: files are not synced to disk. A power failure may damage the latest file; its checksum shows that.
 *
 * @param folder may not exist yet.
 */
export function snapshotFolder(folder: string): SnapshotStore {
  const fileOf = (name: string): string => join(folder, name + ENDING);
  return {
    async list() {
      const files = await ifPresent(readdir(folder));
      const names = (files ?? []).filter((file) => file.endsWith(ENDING)).sort();
      const found = await Promise.all(
        names.map(async (file) => {
          const status = await ifPresent(stat(join(folder, file)));
          return status && { name: file.slice(0, -ENDING.length), bytes: status.size };
        }),
      );
      return found.filter((each) => each !== undefined);
    },
    read: (name, maxBytes) =>
      ifPresent(maxBytes === undefined ? readFile(fileOf(name)) : readStart(fileOf(name), maxBytes)),
    async take(name) {
      const file = join(folder, `${name}.${randomUUID()}${TAKEN}`);
      const release = () => rm(file, { force: true });
      try {
        // Copying 14 MB would take a tenth of the time of a load, so a hard link is tried first. Not every file system
        // has links.
        const isThere = await ifPresent(
          link(fileOf(name), file)
            .catch(() => copyFile(fileOf(name), file))
            .then(() => true),
        );
        return isThere === undefined ? undefined : { content: await readFile(file), file, release };
      } catch (error) {
        await release();
        throw error;
      }
    },
    async write(name, content) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const temporaryFile = join(folder, `${name}.${process.pid}`);
      try {
        await writeFile(temporaryFile, content, { mode: 0o600 });
        await rename(temporaryFile, fileOf(name));
      } catch (error) {
        await rm(temporaryFile, { force: true });
        throw error;
      }
    },
    async remove(name) {
      const removed = await ifPresent(rm(fileOf(name)).then(() => true));
      return removed === true;
    },
  };
}

/** Stores snapshots in memory, until the process ends. */
export function snapshotsInMemory(): SnapshotStore {
  const kept = new Map<string, Buffer>();
  return {
    list: async () =>
      [...kept]
        .map(([name, { length }]) => ({ name, bytes: length }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    read: async (name, maxBytes) => kept.get(name)?.subarray(0, maxBytes),
    take: async (name) => {
      const content = kept.get(name);
      return content && { content, file: undefined, release: async () => undefined };
    },
    write: async (name, content) => void kept.set(name, Buffer.concat(content)),
    remove: async (name) => kept.delete(name),
  };
}

/** Removes the files that a killed process had taken from a folder of snapshots. */
export async function releaseAllTaken(folder: string): Promise<void> {
  const files = (await ifPresent(readdir(folder))) ?? [];
  const taken = files.filter((file) => file.endsWith(TAKEN));
  await Promise.all(taken.map((file) => rm(join(folder, file), { force: true })));
}

async function readStart(file: string, maxBytes: number): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function ifPresent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
