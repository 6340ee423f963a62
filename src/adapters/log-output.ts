import { write, writeSync } from 'node:fs';

/**
 * Lines on a file descriptor that never stop the process: not when the disk is full, not when the reader has ended and not
 * when it is stuck. Lines that cannot be written are dropped and counted.
 */
export interface LogOutput {
  /** Queues whole lines. They are written together, within `MAX_DELAY_MS`. */
  write(lines: string): void;
  /** Sets the line that says how many lines were dropped. It is written once lines can be written again. */
  describeDrops(describe: (lines: number) => string): void;
  /** Lines dropped so far. */
  dropped(): number;
}

type Descriptor = 1 | 2;

/** The longest time that a line waits for others to be written with it. Each write costs more CPU than a small request. */
const MAX_DELAY_MS = 20;
const BATCH_LENGTH = 8192;

/** CHOICE: when the reader of the log is stuck, lines beyond this are dropped. */
const MAX_WAITING_LENGTH = 16 * 1024 * 1024;

/** CHOICE: how often a full disk or a reader that has ended is tried again. */
const RETRY_MS = 1_000;
/** How often a reader that is slow is tried again. */
const BUSY_MS = 50;

/** CHOICE: how long the end of the process waits for a slow reader of its last lines. */
const MAX_EXIT_MS = 1_000;
const EXIT_RETRY_MS = 2;

/** The message of the note about dropped lines. */
export const LINES_DROPPED = 'lines of the log were dropped, because they could not be written';

const NOTHING = Buffer.alloc(0);
const LINE_FEED = 0x0a;
const outputs = new Map<Descriptor, LogOutput>();

/** The one output of this process on the descriptor. */
export function logOutput(descriptor: Descriptor): LogOutput {
  const known = outputs.get(descriptor);
  if (known !== undefined) return known;
  const made = openOutput(descriptor);
  outputs.set(descriptor, made);
  return made;
}

/** The lines of the log that this process has dropped. */
export function droppedLogLines(): number {
  return [...outputs.values()].reduce((sum, output) => sum + output.dropped(), 0);
}

function openOutput(descriptor: Descriptor): LogOutput {
  makeNonBlocking(descriptor);
  let waiting = '';
  /** The bytes that are being written, and what they are. */
  let batch: Buffer = NOTHING;
  let batchIs: 'lines' | 'note' = 'lines';
  let state: 'idle' | 'writing' | 'busy reader' = 'idle';
  let isFlushDue = false;
  /** Since a write failed. Only the note about dropped lines is tried until it can be written. */
  let isFailing = false;
  /** A write ended in the middle of a line. */
  let isMidLine = false;
  let dropped = 0;
  let noted = 0;
  let notedByBatch = 0;
  let describe = describeAsJson;

  function takeNote(): string {
    notedByBatch = dropped;
    return (isMidLine ? '\n' : '') + describe(dropped - noted);
  }

  function flush(): void {
    isFlushDue = false;
    if (state !== 'idle' || isFailing) return;
    if (dropped > noted) {
      begin('note', takeNote());
    } else if (waiting.length > 0) {
      const lines = waiting;
      waiting = '';
      begin('lines', lines);
    }
  }

  function begin(kind: typeof batchIs, text: string): void {
    batchIs = kind;
    batch = Buffer.from(text);
    attempt();
  }

  function attempt(): void {
    state = 'writing';
    write(descriptor, batch, (error, written) => {
      if (error?.code === 'EAGAIN') {
        state = 'busy reader';
        setTimeout(attempt, BUSY_MS).unref();
      } else if (error) {
        fail();
      } else {
        isMidLine = batch[written - 1] !== LINE_FEED;
        batch = batch.subarray(written);
        if (batch.length > 0) attempt();
        else succeed();
      }
    });
  }

  function succeed(): void {
    state = 'idle';
    isFailing = false;
    if (batchIs === 'note') noted = notedByBatch;
    if (dropped > noted || waiting.length >= BATCH_LENGTH) flush();
    else if (waiting.length > 0) flushSoon();
  }

  function fail(): void {
    state = 'idle';
    isFailing = true;
    // The next attempt writes the note with the count at that time.
    if (batchIs === 'lines') dropped += linesIn(batch);
    batch = NOTHING;
    dropped += linesIn(waiting);
    waiting = '';
    setTimeout(() => begin('note', takeNote()), RETRY_MS).unref();
  }

  function flushSoon(): void {
    if (isFlushDue) return;
    isFlushDue = true;
    setTimeout(flush, MAX_DELAY_MS).unref();
  }

  // The last chance of lines that wait. Bytes that a thread is writing are not written twice.
  process.on('exit', () => {
    const unfinished = state === 'busy reader' ? batch : NOTHING;
    const note = dropped > (batchIs === 'note' && state !== 'idle' ? notedByBatch : noted) ? takeNote() : '';
    writeAtOnce(descriptor, Buffer.concat([unfinished, Buffer.from(note + waiting)]));
  });

  return {
    write(lines) {
      if (isFailing || waiting.length + lines.length > MAX_WAITING_LENGTH) {
        dropped += linesIn(lines);
        return;
      }
      waiting += lines;
      if (waiting.length >= BATCH_LENGTH) flush();
      else flushSoon();
    },
    describeDrops(given) {
      describe = given;
    },
    dropped: () => dropped,
  };
}

function describeAsJson(lines: number): string {
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lines, msg: LINES_DROPPED })}\n`;
}

/**
 * Makes a pipe or a socket non-blocking, as Node does for its own stream. A blocked write would keep a thread of Node, and
 * the process could not end.
 */
function makeNonBlocking(descriptor: Descriptor): void {
  void (descriptor === 1 ? process.stdout : process.stderr);
}

/** Writes until nothing is left, a write fails or the reader takes nothing for too long. */
function writeAtOnce(descriptor: Descriptor, bytes: Buffer): void {
  const never = new Int32Array(new SharedArrayBuffer(4));
  const endMs = performance.now() + MAX_EXIT_MS;
  let left = bytes;
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(descriptor, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() >= endMs) return;
      Atomics.wait(never, 0, 0, EXIT_RETRY_MS);
    }
  }
}

/** Works for text and for UTF-8. */
function linesIn(text: string | Buffer): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
