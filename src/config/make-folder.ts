import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder that a user has named, and the missing folders above it.
 *
 * NOTE: `recursive` is not used. With it, Node loops forever where the system returns ENOENT although the folder above
 * exists, as in `/proc`.
 *
 * @param mode the mode of the folders that are created.
 * @throws an error with a `code`, such as EACCES, EROFS or ENOTDIR.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  if (isFolder(folder)) return;
  const above = dirname(folder);
  if (!existsSync(above)) makeFolder(above, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isFolder(folder)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
