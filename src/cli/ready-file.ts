import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { StartError } from '../start-error.ts';

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist; create it',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
};

/**
 * Removes the file of a process that was killed, so that a script does not read it before the new server is ready.
 * The file of a running process stays until this one is ready, because this one may fail to start.
 */
export function removeStaleReadyFile(path: string): void {
  const pid = pidIn(path);
  if (pid !== undefined && (pid === process.pid || !isRunning(pid))) rmSync(path, { force: true });
}

/**
 * Writes the file atomically. It contains the app secret, so only its owner can read it. Whatever way this process ends
 * by itself, it withdraws the file. INVARIANT: signals are caught already.
 *
 * @throws StartError
 */
export function writeReadyFile(path: string, content: object): void {
  const temporaryFile = `${path}.${process.pid}`;
  try {
    writeFileSync(temporaryFile, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(temporaryFile, path);
  } catch (cause) {
    try {
      rmSync(temporaryFile, { force: true });
    } catch {
      // The reason below says what is wrong with the folder.
    }
    const reason = reasons[(cause as NodeJS.ErrnoException).code ?? ''] ?? (cause as Error).message;
    throw new StartError(`--ready-file: \`${path}\` cannot be written: ${reason}`, { cause });
  }
  process.once('exit', () => withdrawReadyFile(path));
}

/** Removes the file, unless another process has replaced it by its own. */
export function withdrawReadyFile(path: string): void {
  if (pidIn(path) === process.pid) rmSync(path, { force: true });
}

/** The process that a ready file names; undefined for any other file, or none. */
function pidIn(path: string): number | undefined {
  try {
    const { pid, base_url: baseUrl } = JSON.parse(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 && typeof baseUrl === 'string' ? pid : undefined;
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is the process of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
