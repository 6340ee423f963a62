import { rmSync, statfsSync, statSync, write } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { logOutput } from '../adapters/log.ts';
import { systemEntropy } from '../adapters/runtime.ts';
import { readSignerConfig } from '../config/config.ts';
import type { SignerConfig } from '../config/signer.ts';
import { StartError } from '../config/start-error.ts';
import type { SigningJournal } from '../engine/authorization/signing-budget.ts';
import { assertBackendsAgree } from '../engine/crypto/secp256k1.ts';
import { isListening, openBudgetJournal } from './budget-journal.ts';
import { masterKeyIdsOf, productionKeyStore } from './production-keys.ts';
import {
  type ServedConnection,
  type ServedKeyStore,
  serveConnection,
  sharedMemory,
} from './serve-connection.ts';

interface SignerParts extends ServedKeyStore {
  /** Stops renewing the token of the key management service. */
  close(): void;
}

/**
 * Returns the key store of a signer, and what its connections need.
 *
 * @throws when the native and the JavaScript signing library disagree.
 */
export function servedKeyStore(
  { logins, building, signaturesPerRequest, ...masterKeys }: SignerConfig,
  journal?: SigningJournal,
): SignerParts {
  assertBackendsAgree();
  const ending = new AbortController();
  return {
    keyStore: productionKeyStore(masterKeys, systemEntropy, {
      ...{ logins, building, signaturesPerRequest, journal },
      tokenRenewal: { signal: ending.signal, report },
    }),
    masterKeyIds: masterKeyIdsOf(masterKeys),
    report,
    close: () => ending.abort(),
  };
}

/** Serves the server that started this process. Exits when the channel closes. */
export function serveChannel(channel: Duplex, served: SignerParts): void {
  channel.on('close', () => {
    served.close();
    process.exit(0);
  });
  serveConnection(channel, served);
}

/**
 * CHOICE: lines beyond this number per second are dropped and counted, because a caller can cause an unlimited number
 * of them.
 */
const MAX_LINES = 10;
const WINDOW_MS = 1_000;

let windowStartMs = Number.NEGATIVE_INFINITY;
let lines = 0;
let dropped = 0;

/** Writes a log line to stderr, in the format of the server's log. */
function report(fields: object, msg: string): void {
  const nowMs = performance.now();
  if (nowMs - windowStartMs >= WINDOW_MS) [windowStartMs, lines] = [nowMs, 0];
  if (lines >= MAX_LINES) {
    dropped += 1;
    return;
  }
  lines += 1;
  const more = dropped === 0 ? {} : { dropped };
  dropped = 0;
  const line = JSON.stringify({ level: 'error', component: 'signer', ...fields, ...more, msg });
  logOutput(2).write(`${line}\n`);
}

export interface SocketPlace {
  readonly path: string;
  /** Whether the group of the folder may connect. Servers that run as another user need it. */
  readonly isForGroup: boolean;
}

/** CHOICE: larger than the number of processes of all servers on a host. */
const MAX_CONNECTIONS = 64;

/** How long calls in progress may take after the signer was told to stop. */
const LEAVE_MS = 5_000;

/**
 * CHOICE: one signature, and two more in case results are lost in a crash. The limit applies only to a signer on a
 * socket. A signer that a server starts runs as the same user, so the server could read its memory anyway, and it
 * counts only the requests of one process. With any limit, identical requests without an expiry would be refused sooner
 * or later.
 */
const SIGNATURES_PER_REQUEST = 3;

interface ListeningSigner {
  /** Stops accepting connections. Resolves once the calls in progress have ended, or after `LEAVE_MS`. */
  close(): Promise<void>;
}

/**
 * Runs a signer on a socket until a signal ends it, then exits. If it cannot start, prints the reason and exits with 1.
 */
export async function runOnSocket({
  stateFolder,
  ...place
}: SocketPlace & { readonly stateFolder: string | undefined }): Promise<void> {
  try {
    // Only this user can read files that the process creates. Set once, because the mask applies to the whole process.
    process.umask(0o077);
    const config = readSignerConfig();
    const journal = await openBudgetJournal(stateFolder ?? dirname(place.path));
    const served = servedKeyStore({ signaturesPerRequest: SIGNATURES_PER_REQUEST, ...config }, journal);
    const signer = await serveSocket(place, served);
    void writeLine(1, JSON.stringify({ msg: 'ready', socket: place.path }));
    // Log rotation sends SIGHUP to make programs reopen their files. This one has nothing to reopen, and must not end.
    process.on('SIGHUP', () => undefined);
    const signals = ['SIGINT', 'SIGTERM'] as const;
    await new Promise<void>((resolve) => {
      for (const signal of signals) process.once(signal, () => resolve());
    });
    for (const signal of signals) process.once(signal, () => process.exit(1));
    await signer.close();
    served.close();
    await journal.close();
    process.exit(0);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    await writeLine(2, `custos: ${error.message}`);
    process.exit(1);
  }
}

/**
 * Writes a line to standard output or standard error.
 *
 * NOTE: asynchronous, because the reader of the output may have ended or may be slow.
 */
function writeLine(descriptor: 1 | 2, line: string): Promise<void> {
  return new Promise((resolve) => write(descriptor, `${line}\n`, () => resolve()));
}

/**
 * Serves calls on a socket until `close`.
 *
 * @throws StartError when the socket cannot be created.
 */
async function serveSocket(
  { path, isForGroup }: SocketPlace,
  served: ServedKeyStore,
): Promise<ListeningSigner> {
  const memory = sharedMemory();
  const open = new Set<ServedConnection & { readonly ended: Promise<void>; end(): void }>();
  const server = createServer((socket) => {
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const connection = {
      ...serveConnection(socket, served, memory),
      ended,
      end: () => void socket.destroy(),
    };
    open.add(connection);
    void ended.then(() => open.delete(connection));
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listenOn(server, path, isForGroup);
  return {
    async close() {
      server.close();
      for (const each of open) each.leave();
      const all = Promise.all([...open].map(({ ended }) => ended));
      await Promise.race([all, pause(LEAVE_MS, undefined, { ref: false })]);
      for (const each of open) each.end();
    },
  };
}

async function listenOn(server: Server, path: string, isForGroup: boolean): Promise<void> {
  const maskBefore = process.umask(isForGroup ? 0o117 : 0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) =>
        reject(
          new StartError(`\`${path}\` cannot be listened on: ${(cause as NodeJS.ErrnoException).code}`, {
            cause,
          }),
        ),
      );
      server.listen(path, resolve);
    });
  } finally {
    process.umask(maskBefore);
  }
  // Ignore a connection that cannot be accepted, for example because too many files are open.
  server.on('error', () => undefined);
}

/**
 * Checks the folder of the socket and removes a socket that a signer which has ended left behind.
 *
 * @throws StartError when the folder has an unexpected owner or too wide a mode, or another signer listens there.
 */
export async function claimSocket({ path, isForGroup }: SocketPlace): Promise<void> {
  requirePrivate(dirname(path), isForGroup ? 0o750 : 0o700);
  if (await isListening(path)) throw new StartError(`another signer listens at \`${path}\``);
  if (statSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path);
}

// Source: linux/magic.h, TMPFS_MAGIC and RAMFS_MAGIC.
const inMemory: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

/**
 * Requires a folder that only this user can write to. Returns whether the folder is in memory, so that a restart of the
 * machine empties it.
 *
 * @throws StartError
 */
export function claimState(folder: string, isForGroup: boolean): boolean {
  requirePrivate(folder, isForGroup ? 0o750 : 0o700);
  return inMemory.has(statfsSync(folder).type);
}

function requirePrivate(folder: string, most: number): void {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true)
    throw new StartError(`the folder \`${folder}\` does not exist; create it`);
  const mode = found.mode & 0o777;
  if (found.uid !== process.getuid?.())
    throw new StartError(`\`${folder}\`: expected this user as its owner`);
  if ((mode & ~most) !== 0) {
    throw new StartError(`\`${folder}\`: expected mode ${most.toString(8)}, got ${mode.toString(8)}`);
  }
}
