import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type SnapshotStore, snapshotFolder, snapshotsOf } from '../adapters/snapshot-folder.ts';
import type { SandboxConfig } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { masterKeyCheckBinding } from '../domain/base/sealed-keys/sealed-keys.ts';
import { entities } from '../domain/tables.ts';
import { ApiError, notFound } from '../errors.ts';
import { sandboxKeyStore } from '../keys/sandbox-keys.ts';
import type { ControllableSnapshots, SnapshotFacts } from '../sandbox/control-plane.ts';
import type { RequestLog } from '../sandbox/requests/request-log.ts';
import { chainStoreSteps } from '../sandbox/simulated/chains/store-schema.ts';
import {
  decodeSnapshot,
  encodeSnapshot,
  HEADER_BYTES,
  InvalidSnapshotError,
  readSnapshotHeader,
  type Snapshot,
} from '../sandbox/snapshot-file.ts';
import { migrations } from '../storage/migrations/migrations.ts';
import { jsonColumnsOf } from '../storage/sql-functions.ts';
import { damageOfImage, masterKeyChecksIn } from '../storage/sqlite/images.ts';
import { schema, type WholeState } from './whole-state.ts';

/** CHOICE: a sandbox has at most 100 snapshots, of at most 256 MiB each and 1 GiB together. */
const limits = { count: 100, bytes: 256 * 1024 * 1024, totalBytes: 1024 * 1024 * 1024 };

/** The columns that entities declare as JSON, and the text columns that operations parse as JSON. */
const jsonColumns = jsonColumnsOf(entities, [
  ['wallets', 'additional_signers'],
  ['users', 'mfa_methods'],
  ['users', 'custom_metadata'],
  ['policies', 'rules'],
]);

const migrationSteps = migrations.map(({ sqlite }) => sqlite);

interface SnapshotOptions {
  readonly store: SnapshotStore;
  readonly whole: Pick<WholeState, 'save' | 'load'>;
  /** Snapshots of other apps are rejected, because the app's id was printed at the start. */
  readonly appId: string;
}

export function namedSnapshots({ store, whole, appId }: SnapshotOptions): ControllableSnapshots {
  const write = async (name: string, content: readonly Buffer[]): Promise<SnapshotFacts> => {
    const bytes = content.reduce((sum, { length }) => sum + length, 0);
    requireRoom(await store.list(), name, bytes);
    await store.write(name, content);
    return factsOf(name, bytes, Buffer.concat(content.slice(0, 2)).subarray(0, HEADER_BYTES));
  };
  const read = async (name: string): Promise<Buffer> => {
    const content = isName(name) ? await store.read(name) : undefined;
    if (content === undefined) throw notFound('Snapshot');
    return content;
  };
  return {
    async list() {
      const listed = await store.list();
      return Promise.all(
        listed.map(async ({ name, bytes }) => factsOf(name, bytes, await store.read(name, HEADER_BYTES))),
      );
    },
    save: async (name) => write(name, encodeSnapshot(await whole.save())),
    async load(name) {
      const taken = isName(name) ? await store.take(name) : undefined;
      if (taken === undefined) throw notFound('Snapshot');
      try {
        const snapshot = decodeSnapshot(taken.content);
        const fault = faultOf(snapshot, appId) ?? (await damageText(snapshot));
        if (fault !== undefined) throw new InvalidSnapshotError(fault);
        await whole.load(snapshot, taken.file);
      } catch (error) {
        if (!(error instanceof InvalidSnapshotError)) throw error;
        throw new ApiError('invalid_state', error.message);
      } finally {
        await taken.release();
      }
    },
    async remove(name) {
      if (!isName(name) || !(await store.remove(name))) throw notFound('Snapshot');
    },
    read,
    async write(name, content) {
      const snapshot = decodeSnapshot(content);
      // A snapshot of another version can be stored. It is checked again when it is loaded.
      const fault = hasSchema(snapshot) ? await damageText(snapshot) : undefined;
      if (fault !== undefined) throw new InvalidSnapshotError(fault);
      return write(name, [content]);
    },
  };
}

/**
 * Returns whether a string is a valid name for a snapshot. The API document has the same rule. Other names could not
 * be file names.
 */
function isName(name: string): boolean {
  return /^[a-z0-9][a-z0-9._-]{0,63}$/.test(name);
}

function requireRoom(
  listed: readonly { readonly name: string; readonly bytes: number }[],
  name: string,
  bytes: number,
): void {
  const others = listed.filter((other) => other.name !== name);
  const total = others.reduce((sum, other) => sum + other.bytes, bytes);
  const refuse = (what: string): never => {
    throw new ApiError('invalid_state', `${what}; delete a snapshot first`);
  };
  if (others.length >= limits.count) refuse(`there are ${limits.count} snapshots, which is the maximum`);
  if (bytes > limits.bytes) refuse(`the snapshot has ${bytes} bytes, expected at most ${limits.bytes}`);
  if (total > limits.totalBytes) {
    refuse(`all snapshots would have ${total} bytes, expected at most ${limits.totalBytes}`);
  }
}

function factsOf(name: string, bytes: number, start: Buffer | undefined): SnapshotFacts {
  try {
    const { savedAtMs, nowMs, version } = readSnapshotHeader(start ?? Buffer.alloc(0));
    return { name, bytes, savedAtMs, nowMs, version };
  } catch (error) {
    if (!(error instanceof InvalidSnapshotError)) throw error;
    return { name, bytes, savedAtMs: null, nowMs: null, version: null };
  }
}

function numbers({ database, chains }: Snapshot['schema']): string {
  return `${database}.${chains}`;
}

function hasSchema(snapshot: Snapshot): boolean {
  return numbers(snapshot.schema) === numbers(schema);
}

/**
 * Describes damage in a snapshot, or returns undefined if there is none. Checksums prove that a snapshot is complete,
 * but not that a sandbox can run with it. The snapshot may come from someone else.
 */
async function damageText({ database, chains, state }: Snapshot): Promise<string | undefined> {
  const damage =
    damageOfImage(database, migrationSteps, jsonColumns) ??
    (chains === undefined ? undefined : damageOfImage(chains, chainStoreSteps));
  if (damage !== undefined) return `a database in the snapshot cannot be used: ${damage}`;
  const keyStore = sandboxKeyStore(state.masterKeyHex);
  try {
    for (const check of masterKeyChecksIn(database)) await keyStore.open(check, masterKeyCheckBinding);
    return undefined;
  } catch {
    return 'a database in the snapshot cannot be used: its master key does not open it';
  } finally {
    keyStore.close();
  }
}

/** Returns the reason why a complete snapshot cannot be loaded here, or undefined if it can. */
function faultOf(snapshot: Snapshot, appId: string | undefined): string | undefined {
  const { version, state } = snapshot;
  if (!hasSchema(snapshot)) {
    return `the snapshot was saved by version ${version}, with schema ${numbers(snapshot.schema)}; expected schema ${numbers(schema)}: load it with the version that saved it`;
  }
  if (appId !== undefined && state.appId !== appId) {
    return `the snapshot is of a sandbox with the app \`${state.appId}\`, expected \`${appId}\`; start a sandbox with --load`;
  }
  return undefined;
}

/** The start of each message about the snapshot of `--load`. */
export const LOAD_OPTION = '--load: ';

/**
 * Reads the snapshot of `--load`: a file, or the name of a snapshot in the data folder.
 *
 * @throws StartError
 */
export async function snapshotOf(
  config: Pick<SandboxConfig, 'load' | 'dataFolder' | 'appId'>,
  option = LOAD_OPTION,
): Promise<Snapshot | undefined> {
  const { load, dataFolder, appId } = config;
  if (load === undefined) return undefined;
  const isStored = dataFolder !== undefined && isName(load) && !existsSync(resolve(load));
  const content = isStored ? await snapshotFolder(snapshotsOf(dataFolder)).read(load) : readIfPresent(load);
  if (content === undefined) {
    const places = dataFolder === undefined ? 'a file' : 'a file or a snapshot in the data folder';
    throw new StartError(`${option}\`${load}\` does not exist; expected ${places}`);
  }
  try {
    const snapshot = decodeSnapshot(content);
    const fault = faultOf(snapshot, appId) ?? (await damageText(snapshot));
    if (fault !== undefined) throw new InvalidSnapshotError(fault);
    return snapshot;
  } catch (error) {
    if (!(error instanceof InvalidSnapshotError)) throw error;
    throw new StartError(`${option}\`${load}\`: ${error.message}`, { cause: error });
  }
}

/**
 * Reads a file that a failed test has kept, for a sandbox that shows it. Its clock stands still, so that nothing
 * happens that had not happened when the file was written.
 *
 * @throws StartError
 */
export async function keptSnapshot(file: string): Promise<Snapshot> {
  const snapshot = (await snapshotOf({ load: file, dataFolder: undefined, appId: undefined }, ''))!;
  const { nowMs, state } = snapshot;
  return { ...snapshot, state: { ...state, clock: { ...state.clock, frozenAtMs: nowMs } } };
}

/**
 * Adds the recorded requests in a snapshot to the log of a sandbox that starts with it.
 *
 * @throws StartError
 */
export function restoreRequests(
  log: RequestLog | undefined,
  snapshot: Snapshot | undefined,
  option: string,
): void {
  if (log === undefined || snapshot?.requests === undefined) return;
  try {
    log.restore(snapshot.requests);
  } catch (cause) {
    // The checksum proves that the bytes are complete, but not who wrote them.
    const reason = (cause as Error).message;
    throw new StartError(`${option}the recorded requests in the file cannot be read: ${reason}`, { cause });
  }
}

function readIfPresent(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
