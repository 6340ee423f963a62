import type { Writable } from 'node:stream';

export interface FrameWriter {
  add(frame: Buffer): void;
  /** The bytes that the other end has not taken. */
  readonly unsent: number;
  /** How often it has taken what was written. */
  readonly taken: number;
}

/** Writes what is added in one turn of the event loop at once: a system call takes longer than a signature. */
export function createFrameWriter(stream: Writable): FrameWriter {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let taken = 0;
  function flush(): void {
    const [first] = waiting;
    const bytes = waiting.length === 1 && first !== undefined ? first : Buffer.concat(waiting);
    waiting = [];
    waitingBytes = 0;
    if (stream.destroyed) return;
    stream.write(bytes, () => {
      taken += 1;
    });
  }
  return {
    add(frame) {
      waitingBytes += frame.length;
      if (waiting.push(frame) === 1) setImmediate(flush);
    },
    get unsent() {
      return waitingBytes + stream.writableLength;
    },
    get taken() {
      return taken;
    },
  };
}
