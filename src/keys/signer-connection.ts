import { type Stats, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { StartError } from '../config/start-error.ts';
import {
  createFrameReader,
  createFrameWriter,
  encodeFrame,
  type Frame,
  FrameError,
  frameKinds,
  type Message,
} from './frames.ts';
import { MAX_IN_FLIGHT } from './serve-connection.ts';
import type { SignerLink } from './signer-client.ts';
import {
  CallTooLargeError,
  fromSentError,
  SignerRefusedError,
  SignerUnavailableError,
} from './signer-errors.ts';

/** The properties that a signer sends when a server connects. */
export interface Hello {
  readonly currentMasterKeyId: string;
  readonly masterKeyIds: readonly string[];
  /** The apps whose login tokens it verifies. */
  readonly loginApps?: readonly string[];
  /** The smart contracts that it signs calls to; undefined from a signer of an earlier version. */
  readonly contracts?: readonly string[];
}

/** A connection over which the signer has sent its `hello`. */
export interface SignerConnection {
  readonly hello: Hello;
  call(operation: number, parts: readonly Uint8Array[], json: unknown): Promise<Message>;
  /**
   * Resolves when the connection takes no new calls, because the signer is about to stop or the connection has ended.
   */
  readonly leaving: Promise<void>;
  /** Resolves when the connection has ended, for any reason. Every call has then resolved or rejected. */
  readonly ended: Promise<void>;
  hasEnded(): boolean;
  close(): void;
  /** Closes the connection once the last call has its result. */
  finish(): void;
}

/**
 * CHOICE: the maximum number of bytes in the calls that wait for results. A signer allows its connections eight times
 * as many in total.
 */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;

/** The time limit of a call, ms. It is longer than the time limit of a call to the key management service. */
const CALL_MS = 10_000;
const HELLO_MS = 15_000;

interface Waiting {
  readonly resolve: (message: Message) => void;
  readonly reject: (error: Error) => void;
  readonly untilMs: number;
  readonly bytes: number;
}

/**
 * Resolves with the connection once the signer has sent its `hello`.
 *
 * @throws SignerUnavailableError without a hello; SignerRefusedError when the signer sends why it cannot serve.
 */
export function connectTo(stream: Duplex, callMs = CALL_MS, helloMs = HELLO_MS): Promise<SignerConnection> {
  const reader = createFrameReader();
  const writer = createFrameWriter(stream);
  // HOT: an object instead of a map. When V8 grows a map, the old table references the new one. Once an old table is in
  // the old generation, only a full garbage collection frees the later tables and the requests in them.
  let waiting: Record<number, Waiting> = {};
  let waitingCount = 0;
  let waitingBytes = 0;
  const hello = Promise.withResolvers<Hello>();
  const end = Promise.withResolvers<void>();
  const leaving = Promise.withResolvers<void>();
  let lastId = 0;
  let hasEnded = false;
  let isLast = false;

  function take(id: number): Waiting {
    const call = waiting[id];
    if (call === undefined) throw new FrameError(`got the result of an unknown call ${id}`);
    delete waiting[id];
    waitingCount -= 1;
    waitingBytes -= call.bytes;
    if (isLast && waitingCount === 0) setImmediate(close);
    return call;
  }

  function receive(frame: Frame): void {
    if (frame.kind === frameKinds.hello) hello.resolve(frame.json as Hello);
    else if (frame.kind === frameKinds.leaving) leaving.resolve();
    else if (frame.kind === frameKinds.failure && frame.id === 0) hello.reject(refusalOf(frame.json));
    else if (frame.kind === frameKinds.result) take(frame.id).resolve(frame);
    else if (frame.kind === frameKinds.failure) take(frame.id).reject(fromSentError(frame.json));
    else throw new FrameError('expected the answer to a call');
  }

  function close(): void {
    if (hasEnded) return;
    hasEnded = true;
    clearInterval(sweep);
    clearTimeout(helloTimer);
    stream.destroy();
    const ended = new SignerUnavailableError('the connection to the signer has ended');
    hello.reject(ended);
    for (const call of Object.values(waiting)) call.reject(ended);
    waiting = {};
    leaving.resolve();
    end.resolve();
  }

  function finish(): void {
    isLast = true;
    if (waitingCount === 0) close();
  }

  // The signer takes less time than this for any call. If there is still no result, the signer hangs.
  function endIfLate(): void {
    const nowMs = performance.now();
    if (Object.values(waiting).some(({ untilMs }) => untilMs < nowMs)) close();
  }
  const sweep = setInterval(endIfLate, callMs / 10);
  const helloTimer = setTimeout(close, helloMs);
  sweep.unref();

  stream.on('data', (chunk: Buffer) => {
    try {
      for (const frame of reader.push(chunk)) receive(frame);
    } catch {
      close();
    }
  });
  stream.on('close', close);
  stream.on('end', close);
  stream.on('error', close);

  async function call(operation: number, parts: readonly Uint8Array[], json: unknown): Promise<Message> {
    if (hasEnded) throw new SignerUnavailableError('the connection to the signer has ended');
    if (waitingCount >= MAX_IN_FLIGHT)
      throw new SignerUnavailableError('too many calls to the signer at once');
    lastId = lastId === 0xffff_ffff ? 1 : lastId + 1;
    const id = lastId;
    const frame = callFrame({ kind: frameKinds.call, id, operation, parts, json });
    if (waitingCount > 0 && waitingBytes + frame.length > MAX_WAITING_BYTES)
      throw new SignerUnavailableError('too many bytes wait for the signer');
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    waiting[id] = { resolve, reject, untilMs: performance.now() + callMs, bytes: frame.length };
    waitingCount += 1;
    waitingBytes += frame.length;
    writer.add(frame);
    return promise;
  }

  return hello.promise.then((first) => {
    clearTimeout(helloTimer);
    return {
      hello: first,
      call,
      leaving: leaving.promise,
      ended: end.promise,
      close,
      finish,
      hasEnded: () => hasEnded,
    };
  });
}

function callFrame(call: Frame): Buffer {
  try {
    return encodeFrame(call);
  } catch (error) {
    if (error instanceof FrameError) throw new CallTooLargeError(error);
    throw error;
  }
}

function refusalOf(json: unknown): SignerRefusedError {
  const { faults } = json as { faults?: unknown };
  return new SignerRefusedError(Array.isArray(faults) ? faults.map(String) : []);
}

/** The path of a signer's socket, and the user who may listen there. */
interface SocketOwner {
  readonly path: string;
  /** The user id that must own the socket and its folder. */
  readonly uid: number;
}

export function connectToSocket(owner: SocketOwner): SignerLink {
  let socket: Socket | undefined;
  return {
    stream: (async () => {
      requireOwned(owner);
      socket = connect(owner.path);
      const opened = socket;
      await new Promise<void>((resolve, reject) => {
        opened.once('connect', resolve);
        opened.once('error', (cause) =>
          reject(new StartError(`the signer at \`${owner.path}\` cannot be reached`, { cause })),
        );
      });
      return opened;
    })(),
    end: async () => void socket?.destroy(),
  };
}

const OTHERS = 0o007;
const GROUP_WRITES = 0o020;

/**
 * Requires that only the expected user can replace the socket. Anyone else who replaces it can impersonate the signer,
 * and the server would have the impostor seal secrets and generate keys.
 *
 * @throws StartError
 */
function requireOwned({ path, uid }: SocketOwner): void {
  const folder = dirname(path);
  const [ofFolder, ofSocket] = [statOf(folder), statOf(path)];
  for (const [name, { uid: owner }] of [
    [folder, ofFolder],
    [path, ofSocket],
  ] as const) {
    if (owner !== uid) throw new StartError(`\`${name}\`: expected user ${uid} as its owner, got ${owner}`);
  }
  if ((ofFolder.mode & (OTHERS | GROUP_WRITES)) !== 0) {
    const mode = (ofFolder.mode & 0o777).toString(8);
    throw new StartError(
      `\`${folder}\`: expected mode 700, or 750 for a signer of another user, got ${mode}`,
    );
  }
  if (!ofSocket.isSocket()) throw new StartError(`\`${path}\`: expected a socket`);
}

function statOf(path: string): Stats {
  try {
    return statSync(path);
  } catch (cause) {
    throw new StartError(`no signer listens at \`${path}\``, { cause });
  }
}
