import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { KeyStore } from '../ports/key-store.ts';
import type { Log } from '../ports/runtime.ts';
import { keyStoreCalling, operationNames } from './protocol.ts';
import { connectTo, type Hello, type SignerConnection } from './signer-connection.ts';
import { SignerUnavailableError } from './signer-errors.ts';

/** A connection to a signer that is being opened. If necessary, it starts the signer first. */
export interface SignerLink {
  /** Resolves with the stream. Rejects with the reason, for example when the socket cannot be reached. */
  readonly stream: Promise<Duplex>;
  /** Ends the connection, and the signer if this process has started it. Resolves when that is done. */
  end(): Promise<void>;
}

/** Checks the keys of a signer that has restarted with different keys. Rejects if they must not be used. */
type CheckKeys = (keyStore: KeyStore) => Promise<void>;

/** A signer's key store, and how to check and close its connection. */
export interface SignerKeyStore {
  readonly keyStore: KeyStore;
  /**
   * Sets the check for a signer that restarts with different keys. Such a signer is used only if the check resolves.
   */
  checkKeysBy(check: CheckKeys): void;
  /**
   * Has the signer seal and open a value. Rejects with the reason if that fails or takes longer than two seconds. A
   * result is reused for a second.
   */
  check(): Promise<void>;
  /** Closes the connection, and ends the signer if this process has started it. */
  close(): Promise<void>;
}

/**
 * CHOICE: after the connection to a signer is lost, it is opened again immediately. If it keeps breaking, the pause
 * grows to five seconds.
 */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
/** After a connection that lasted longer than this, the pause is short again. */
const LONG_LIFE_MS = 30_000;
/** CHOICE: how long calls wait for the next signer after a signer has announced that it is stopping. */
const RESTART_MS = 5_000;
/** CHOICE: the time limit of a check, and how long its result is reused. */
const [CHECK_MS, CHECKED_MS] = [2_000, 1_000];

interface SignerKeyStoreOptions {
  readonly log: Log;
  /** The smart contracts that the server calls in transactions that it builds. */
  readonly contracts?: readonly string[];
}

/** The connection that calls currently use. */
interface Current {
  readonly connection: SignerConnection;
  readonly link: SignerLink;
}

/**
 * Connects to a signer, and reconnects whenever the connection ends. While there is no connection, calls fail
 * immediately with an error that `isUnavailable` recognizes. If the signer has announced that it is stopping, calls
 * wait for the next signer for up to `RESTART_MS`.
 *
 * @throws when the first connection fails.
 */
export async function openSignerKeyStore(
  open: () => SignerLink,
  { log, contracts = [] }: SignerKeyStoreOptions,
): Promise<SignerKeyStore> {
  let checkKeys: CheckKeys | undefined;
  let current: Current | undefined = await connect(open());
  let { hello } = current.connection;
  let isClosed = false;
  /** Settles when an announced restart is over. Undefined if none was announced. */
  let restarted: PromiseWithResolvers<void> | undefined;
  const stopping = new AbortController();
  const leftovers = new Set<Promise<void>>();
  warnOfOthers(hello);

  /**
   * Warns about contracts that the signer does not know. The signer refuses calls to them, as it refuses forged calls.
   */
  function warnOfOthers({ contracts: known = contracts }: Hello): void {
    const missing = contracts.filter((each) => !known.includes(each));
    if (missing.length === 0) return;
    log.warn(
      { missing },
      'the signer does not know these contracts, so owned wallets cannot use them; add them to its settings',
    );
  }

  async function reopen(): Promise<Current | undefined> {
    const next = await connect(open()).catch(() => undefined);
    if (next === undefined) return undefined;
    const { connection, link } = next;
    if (isSame(hello, connection.hello) || (await isAccepted(connection))) {
      hello = connection.hello;
      return next;
    }
    connection.close();
    await link.end();
    return undefined;
  }

  /**
   * Returns whether the keys of a restarted signer open the stored data.
   *
   * INVARIANT: nothing is sealed under keys that were not checked against the stored data.
   */
  async function isAccepted({ call, hello: offered }: SignerConnection): Promise<boolean> {
    try {
      if (checkKeys === undefined) throw new Error('expected the same keys while the server starts');
      await checkKeys(keyStoreOf(() => offered, callsOf(call)));
      log.info(
        { master_key_ids: offered.masterKeyIds },
        'the signer restarted with different keys; they open the stored data',
      );
      return true;
    } catch (err) {
      log.error({ err }, 'the signer restarted with keys that do not open the stored data; it is not used');
      return false;
    }
  }

  async function keepOpen(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!isClosed) {
      const openedMs = performance.now();
      const last = current;
      await last?.connection.leaving;
      current = undefined;
      if (performance.now() - openedMs > LONG_LIFE_MS) pauseMs = FIRST_PAUSE_MS;
      if (last !== undefined) pauseMs = await leave(last, pauseMs);
      if (isClosed) return;
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      // A signer that has announced its end usually restarts within a second.
      if (restarted === undefined) pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs);
      if (isClosed) return;
      current = await reopen();
      if (isClosed) current?.connection.close();
      if (current === undefined) continue;
      restarted?.resolve();
      restarted = undefined;
      log.info({}, 'reconnected to the signer');
      warnOfOthers(current.connection.hello);
    }
  }

  /**
   * Leaves a connection that takes no new calls. A signer that has announced its end still finishes the calls that it
   * has received.
   *
   * @returns how long to wait before the next connection, in ms.
   */
  async function leave({ connection, link }: Current, pauseMs: number): Promise<number> {
    if (connection.hasEnded() || isClosed) {
      if (!isClosed) log.warn({ restart_in_ms: pauseMs }, 'lost the connection to the signer; reconnecting');
      connection.close();
      await link.end();
      return pauseMs;
    }
    log.info({}, 'the signer is being restarted');
    startWaiting();
    connection.finish();
    const left = connection.ended.then(() => link.end());
    leftovers.add(left);
    void left.finally(() => leftovers.delete(left));
    return FIRST_PAUSE_MS;
  }

  function startWaiting(): void {
    const waiting = Promise.withResolvers<void>();
    restarted = waiting;
    setTimeout(() => {
      waiting.resolve();
      if (restarted === waiting) restarted = undefined;
    }, RESTART_MS).unref();
  }
  const keeping = keepOpen();

  async function call(operation: number, parts: readonly Uint8Array[], json: unknown) {
    if (current === undefined) await restarted?.promise;
    if (current === undefined) throw new SignerUnavailableError('the signer is being restarted');
    return current.connection.call(operation, parts, json);
  }

  const keyStore = keyStoreOf(() => hello, callsOf(call));
  return {
    keyStore,
    checkKeysBy(check) {
      checkKeys = check;
    },
    check: withCachedResult(async () => {
      if (current === undefined) throw new SignerUnavailableError('the signer is being restarted');
      await sealAndOpen(keyStore);
    }),
    async close() {
      isClosed = true;
      stopping.abort();
      restarted?.resolve();
      const { connection, link } = current ?? {};
      connection?.close();
      await keeping;
      await link?.end();
      await Promise.all(leftovers);
    },
  };
}

type CallByName = Parameters<typeof keyStoreCalling>[0];

const numberOf = new Map(operationNames.map((name, number) => [name, number]));

function callsOf(call: SignerConnection['call']): CallByName {
  return (name, parts, json) => call(numberOf.get(name)!, parts, json);
}

/** Uses getters, because the properties of a signer can change when it restarts. */
function keyStoreOf(hello: () => Hello, call: CallByName): KeyStore {
  return {
    get currentMasterKeyId() {
      return hello().currentMasterKeyId;
    },
    get loginApps() {
      return hello().loginApps ?? [];
    },
    get contracts() {
      return hello().contracts;
    },
    ...keyStoreCalling(call),
  };
}

/** Returns whether both signers have the same keys and the same apps with a login. Their contracts may differ. */
function isSame(one: Hello, other: Hello): boolean {
  const text = ({ currentMasterKeyId, masterKeyIds, loginApps = [] }: Hello): string =>
    JSON.stringify([currentMasterKeyId, masterKeyIds.toSorted(), loginApps.toSorted()]);
  return text(one) === text(other);
}

const checkBinding = { purpose: 'doctor', rowId: 'check', appId: '' };

/** Seals and opens a value, because a key management service may refuse only one of the two operations. */
async function sealAndOpen(keyStore: KeyStore): Promise<void> {
  const sealed = await keyStore.seal(Buffer.from('check'), checkBinding);
  await keyStore.open(sealed, checkBinding);
}

function withCachedResult(work: () => Promise<void>): () => Promise<void> {
  let last: { readonly startedMs: number; readonly result: Promise<void> } | undefined;
  return async () => {
    const startedMs = performance.now();
    if (last === undefined || startedMs - last.startedMs >= CHECKED_MS) {
      last = { startedMs, result: withinTime(work()) };
      last.result.catch(() => undefined);
    }
    return last.result;
  };
}

async function withinTime(work: Promise<void>): Promise<void> {
  const ending = new AbortController();
  const late = pause(CHECK_MS, undefined, { signal: ending.signal, ref: false }).then(() => {
    throw new SignerUnavailableError(`the signer has not answered for ${CHECK_MS} ms`);
  });
  await Promise.race([work, late]).finally(() => ending.abort());
}

async function connect(link: SignerLink): Promise<Current> {
  try {
    return { connection: await connectTo(await link.stream), link };
  } catch (error) {
    await link.end();
    throw error;
  }
}
