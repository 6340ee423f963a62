// Reads the record of the files that the last build read and wrote. It is described in `build-record.d.ts`. It is
// JavaScript, because `start.js` imports it.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
export const out = join(root, 'dist');
export const recordName = 'build.json';

export function readRecord() {
  const file = join(out, recordName);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

export function stateOf(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found === undefined ? 'absent' : `${found.size} ${found.mtimeMs}`;
}

export function isBuilt() {
  const record = readRecord();
  return (
    record !== undefined &&
    Object.entries(record.inputs).every(([path, state]) => stateOf(path) === state) &&
    record.outputs.every((path) => existsSync(join(out, path)))
  );
}
