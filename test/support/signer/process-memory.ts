import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const CHUNK = 16 * 1024 * 1024;

/**
 * Searches the writable memory of a process for these bytes, as a core dump would contain it. Undefined on systems
 * that do not show the memory.
 */
export function foundInMemory(
  pid: number,
  wanted: Readonly<Record<string, Buffer>>,
): Set<string> | undefined {
  let memory: number;
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r');
  } catch {
    return undefined;
  }
  const overlap = Math.max(...Object.values(wanted).map(({ length }) => length));
  const found = new Set<string>();
  const buffer = Buffer.alloc(CHUNK + overlap);
  for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    if (from === undefined || to === undefined) continue;
    const end = Number.parseInt(to, 16);
    for (let at = Number.parseInt(from, 16); at < end; at += CHUNK) {
      const length = readAt(memory, buffer, at, Math.min(buffer.length, end - at));
      const bytes = buffer.subarray(0, length);
      for (const [name, each] of Object.entries(wanted)) if (bytes.includes(each)) found.add(name);
    }
  }
  closeSync(memory);
  return found;
}

function readAt(memory: number, buffer: Buffer, at: number, length: number): number {
  try {
    return readSync(memory, buffer, 0, length, at);
  } catch {
    // The region was unmapped in the meantime, or is reserved.
    return 0;
  }
}
