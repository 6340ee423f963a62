import type { Writable } from 'node:stream';

/** Writes what is added in one turn of the event loop at once: a system call takes longer than a signature. */
export function createFrameWriter(stream: Writable): { add(frame: Buffer): void } {
  let waiting: Buffer[] = [];
  function flush(): void {
    const [first] = waiting;
    const bytes = waiting.length === 1 && first !== undefined ? first : Buffer.concat(waiting);
    waiting = [];
    if (!stream.destroyed) stream.write(bytes);
  }
  return {
    add(frame) {
      if (waiting.push(frame) === 1) setImmediate(flush);
    },
  };
}
