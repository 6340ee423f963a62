import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { temporaryCertificateFolder } from '../../adapters/certificate.ts';
import { systemClock } from '../../adapters/runtime.ts';

/** The file by which other commands find a sandbox that runs on this machine. Only its user can read it. */
export interface RunningSandboxFile {
  readonly base_url: string;
  readonly app_id: string;
  readonly app_secret: string;
  /** The word that clients use in header names in place of `service`. */
  readonly prefix: string;
  readonly version: string;
  /**
   * The token for the control plane, which callers on other machines need. Undefined if the sandbox accepts no such
   * callers.
   */
  readonly control_token?: string | undefined;
  /** The URL of the JSON-RPC of its simulated chains. */
  readonly rpc_url?: string | undefined;
  readonly ca_file: string;
  /** The absolute path of the data folder. Null for a sandbox in memory. */
  readonly data: string | null;
  readonly pid: number;
  /** The folder and the time in which it was started. Undefined in files of older versions. */
  readonly started_in?: string | undefined;
  readonly started_at_ms?: number | undefined;
  /** The start time of that process, in the system's format. Undefined if the system does not tell it. */
  readonly process_started?: string | undefined;
}

const DEFAULT_PORT = '4010';

/** Writes the file by which other commands of this user find a sandbox. Returns a function that removes it. */
export function announceSandbox(
  sandbox: Omit<RunningSandboxFile, 'pid' | 'process_started' | 'started_in' | 'started_at_ms'>,
): () => void {
  const { pid } = process;
  const folder = folderOfRunning();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeLeftovers();
  const file = join(folder, `${portOf(sandbox)}.json`);
  const temporaryFile = `${file}.${pid}`;
  const started = {
    started_in: process.cwd(),
    started_at_ms: systemClock.now(),
    process_started: startOf(pid),
  };
  const announcement: RunningSandboxFile = { ...sandbox, pid, ...started };
  writeFileSync(temporaryFile, `${JSON.stringify(announcement, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(temporaryFile, file);
  return () => {
    // Another sandbox may be using the port by now.
    if (readAnnouncement(file)?.pid === pid) rmSync(file, { force: true });
  };
}

/** The running sandbox that a command means. */
interface FoundSandbox extends RunningSandboxFile {
  /** Whether several run, and only the default port distinguishes this one. */
  readonly isGuess: boolean;
}

/**
 * Finds the running sandbox that a command means. With a data folder, it is the sandbox with that folder. Without one,
 * it is, in this order:
 *
 * - the only sandbox that was started in the current folder, or else in the nearest folder above it
 * - the sandbox on the default port
 * - the only sandbox that runs
 *
 * Returns undefined if no sandbox runs or if the choice is ambiguous.
 */
export function findRunningSandbox(data: string | undefined): FoundSandbox | undefined {
  const running = listRunningSandboxes();
  const found =
    data === undefined ? startedHereOrAbove(running) : running.find((each) => each.data === resolve(data));
  if (found !== undefined || data !== undefined) return found && { ...found, isGuess: false };
  const [only, ...others] = running;
  const chosen =
    running.find((each) => portOf(each) === DEFAULT_PORT) ?? (others.length === 0 ? only : undefined);
  return chosen && { ...chosen, isGuess: others.length > 0 };
}

function startedHereOrAbove(running: readonly RunningSandboxFile[]): RunningSandboxFile | undefined {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    const [first, ...others] = running.filter(({ started_in: startedIn }) => startedIn === folder);
    // A sandbox above belongs to another project if several were started here.
    if (first !== undefined) return others.length === 0 ? first : undefined;
    if (folder === dirname(folder)) return undefined;
  }
}

/** Returns whether a sandbox was started in the current folder. */
export function isStartedHere({ started_in: folder }: Pick<RunningSandboxFile, 'started_in'>): boolean {
  return folder === process.cwd();
}

export function listRunningSandboxes(): RunningSandboxFile[] {
  return listFiles()
    .map((file) => readAnnouncement(file))
    .filter((found): found is RunningSandboxFile => found !== undefined && isRunning(found));
}

/** Removes the files of sandboxes that were killed. */
function removeLeftovers(): void {
  for (const file of listFiles()) {
    const found = readAnnouncement(file);
    if (found !== undefined && !isRunning(found)) rmSync(file, { force: true });
  }
}

function folderOfRunning(): string {
  return join(temporaryCertificateFolder(), 'running');
}

function portOf({ base_url: url }: Pick<RunningSandboxFile, 'base_url'>): string {
  return new URL(url).port;
}

/** Lists the files. Returns an empty list if the folder is missing or belongs to another user. */
function listFiles(): string[] {
  try {
    const folder = folderOfRunning();
    const names = readdirSync(folder).filter((name) => /^\d+\.json$/.test(name));
    return names.map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function readAnnouncement(file: string): RunningSandboxFile | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RunningSandboxFile;
  } catch {
    // The file was removed after the folder was listed.
    return undefined;
  }
}

/**
 * Returns whether the sandbox still runs. A killed sandbox leaves its file behind, and the system may since have
 * given its process id to another process.
 */
function isRunning({ pid, process_started: started }: RunningSandboxFile): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return startOf(pid) === started;
}

/**
 * Returns the start time of a process in clock ticks since boot (proc(5), field 22 of `stat`). Returns undefined on
 * systems other than Linux, and if there is no such process.
 */
function startOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The program's name comes before these fields, in parentheses, and may contain any character.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
