import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { KeyStore } from '../ports/key-store.ts';
import {
  createFrameReader,
  createFrameWriter,
  encodeFrame,
  type Frame,
  FrameError,
  frameKinds,
  type Message,
  type ReceivedFrame,
} from './frames.ts';
import { callHandlers, MessageError, operationNames } from './protocol.ts';
import { toSentError } from './signer-errors.ts';

/**
 * CHOICE: the maximum number of concurrent calls of one connection. It exceeds the number of requests that a server
 * signs concurrently.
 */
export const MAX_IN_FLIGHT = 4_096;

/**
 * CHOICE: the maximum number of bytes that all connections of a signer may occupy together. It is enough for eight
 * servers.
 */
const MAX_HELD_BYTES = 256 * 1024 * 1024;

/**
 * CHOICE: the time limit in which a frame must arrive, and in which the peer must read a result. A server abandons its
 * calls after the same time.
 */
const MAX_SECONDS = 10;

/** CHOICE: how long one connection may start calls before other connections get their turn. */
const TURN_MS = 5;

export interface ServedKeyStore {
  readonly keyStore: KeyStore;
  readonly masterKeyIds: readonly string[];
  /** Logs an unexpected error. The fields contain no secrets. */
  readonly report: (fields: object, message: string) => void;
}

export interface ServedConnection {
  /** Tells the server to open another connection. The server closes this one after the last result. */
  leave(): void;
}

export interface SharedMemory {
  /** Sets the number of bytes that a connection occupies. */
  hold(stream: Duplex, bytes: number): void;
  release(stream: Duplex): void;
}

/**
 * Returns an account of the memory of all connections. When the total exceeds the limit, it closes the connection that
 * occupies the most.
 */
export function sharedMemory(mostBytes = MAX_HELD_BYTES): SharedMemory {
  const held = new Map<Duplex, number>();
  let total = 0;
  function release(stream: Duplex): void {
    total -= held.get(stream) ?? 0;
    held.delete(stream);
  }
  return {
    release,
    hold(stream, bytes) {
      release(stream);
      if (stream.destroyed) return;
      held.set(stream, bytes);
      total += bytes;
      while (total > mostBytes) {
        const [greediest] = [...held].reduce((most, each) => (each[1] > most[1] ? each : most));
        release(greediest);
        greediest.destroy(new FrameError('the connections of this signer hold too many bytes'));
      }
    },
  };
}

/** Sends the reasons why the signer cannot serve, then calls `then`. */
export function sendRefusal(stream: Duplex, faults: readonly string[], then: () => void): void {
  stream.on('error', then);
  stream.end(
    encodeFrame({ kind: frameKinds.failure, id: 0, operation: 0, parts: [], json: { faults } }),
    then,
  );
}

/**
 * Serves the calls of one connection until it ends. Unreadable input closes the connection, and so does a peer that
 * does not read its results.
 *
 * INVARIANT: no input makes this function throw or reject. The caller may be compromised, and its input must not end
 * the signer.
 */
export function serveConnection(
  stream: Duplex,
  { keyStore, masterKeyIds, report }: ServedKeyStore,
  memory = sharedMemory(),
): ServedConnection {
  const reader = createFrameReader();
  const writer = createFrameWriter(stream);
  let inFlight = 0;
  let inFlightBytes = 0;
  const waiting: ReceivedFrame[] = [];

  function send(frame: Frame): void {
    writer.add(encodeFrame(frame));
  }

  function tell(fields: object, message: string): void {
    try {
      report(fields, message);
    } catch {
      // The log may be full or closed. Signing continues without it.
    }
  }

  function account(): void {
    memory.hold(stream, reader.pending + inFlightBytes + writer.unsent);
  }

  async function answer({ id, operation, parts, json }: Frame): Promise<void> {
    const name = operationNames[operation];
    if (name === undefined) throw new MessageError('expected the number of an operation');
    const result: Message = await callHandlers[name](keyStore, { parts, json });
    send({ ...result, kind: frameKinds.result, id, operation: 0 });
    // If the key store returned the bytes unchanged, they are a view of the received frame. The sent frame has a copy,
    // so wipe them.
    if (name === 'open') result.parts[0]?.fill(0);
  }

  function fail({ id, operation }: Frame, error: unknown): void {
    let sent: object | undefined = toSentError(error);
    if (sent === undefined) {
      // NOTE: the message may quote a secret, so only the type of the error is logged.
      const kind = error instanceof Error ? error.name : typeof error;
      tell({ operation: operationNames[operation] ?? operation, error: kind }, 'a call failed');
      sent = { code: error instanceof MessageError ? 'protocol' : 'internal' };
    }
    send({ kind: frameKinds.failure, id, operation: 0, parts: [], json: sent });
  }

  async function handle(frame: ReceivedFrame): Promise<void> {
    try {
      await answer(frame).catch((error: unknown) => fail(frame, error));
    } catch {
      tell({ operation: operationNames[frame.operation] ?? frame.operation }, 'a call cannot be answered');
      stream.destroy();
    } finally {
      inFlight -= 1;
      inFlightBytes -= frame.weight;
      account();
    }
  }

  /** Starts the calls that have arrived. Yields to other connections every `TURN_MS`. */
  async function begin(): Promise<void> {
    let sinceMs = performance.now();
    for (let frame = waiting.at(0); frame !== undefined; frame = waiting.at(0)) {
      // The connection has ended, so nobody will read the results.
      if (stream.destroyed) break;
      void handle(frame);
      // Resolves when the call has ended or waits for something outside this process. Until then the frame stays in
      // `waiting`, so that `isIdle` below is false.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      waiting.shift();
      if (performance.now() - sinceMs < TURN_MS || waiting.length === 0) continue;
      await setImmediate();
      sinceMs = performance.now();
    }
  }

  stream.on('data', (chunk: Buffer) => {
    try {
      const isIdle = waiting.length === 0;
      for (const frame of reader.push(chunk)) {
        if (frame.kind !== frameKinds.call) throw new FrameError('expected a call');
        if (inFlight >= MAX_IN_FLIGHT) throw new FrameError('too many calls at once');
        inFlight += 1;
        inFlightBytes += frame.weight;
        waiting.push(frame);
      }
      if (isIdle) void begin();
      account();
    } catch (error) {
      stream.destroy(error instanceof FrameError ? error : new FrameError('the stream cannot be read'));
    }
  });
  endWhenStuck(stream, reader, writer);
  stream.on('error', (error) => {
    if (error instanceof FrameError) tell({ error: error.message }, 'a connection was ended');
    stream.destroy();
  });
  // The server does not half-close connections: if it has stopped sending, it has also stopped reading. Drop the frames
  // that are left.
  stream.once('end', () => stream.destroy());
  stream.once('close', () => memory.release(stream));
  const { currentMasterKeyId, loginApps = [], contracts } = keyStore;
  const json = { currentMasterKeyId, masterKeyIds, loginApps, contracts };
  send({ kind: frameKinds.hello, id: 0, operation: 0, parts: [], json });
  return { leave: () => send({ kind: frameKinds.leaving, id: 0, operation: 0, parts: [], json: undefined }) };
}

/**
 * Ends a connection when a frame does not arrive in time, or the peer does not read.
 *
 * Counts seconds in which this process ran, not elapsed time. A suspended signer would otherwise close all its
 * connections when it resumes.
 */
function endWhenStuck(
  stream: Duplex,
  reader: ReturnType<typeof createFrameReader>,
  writer: ReturnType<typeof createFrameWriter>,
): void {
  let [arriving, unread] = [0, 0];
  let [framesBefore, takenBefore] = [0, 0];
  const timer = setInterval(() => {
    arriving = reader.pending === 0 || reader.frames !== framesBefore ? 0 : arriving + 1;
    unread = writer.unsent === 0 || writer.taken !== takenBefore ? 0 : unread + 1;
    [framesBefore, takenBefore] = [reader.frames, writer.taken];
    if (arriving >= MAX_SECONDS) stream.destroy(new FrameError('a frame did not arrive in time'));
    else if (unread >= MAX_SECONDS) stream.destroy(new FrameError('the peer does not read its answers'));
  }, 1_000);
  timer.unref();
  stream.once('close', () => clearInterval(timer));
}
