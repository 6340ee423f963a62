import { isDeepStrictEqual } from 'node:util';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, isTooLarge, isUnavailable } from '../errors.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { Services } from '../ports/operation-context.ts';
import { holdsConnection } from '../storage/own-kysely.ts';

// The key store may be the signer, which is another process and may hang. A wait for it inside a transaction would hold
// the connection and its locks. Therefore the work runs in passes:
//
// - A call whose result is already known returns it.
// - A call that the unit of work makes before it holds a connection, which is the common case, is made immediately. The
//   work waits for the result and goes on. If the call took longer than `FRESH_MS`, however, the pass of a unit of work
//   is aborted, because the rows that it has read may have changed.
// - A call that the unit of work makes while it holds a connection is recorded, and the pass is aborted: its unit of
//   work is rolled back, and the key store is called while nothing is locked.
//
// After an aborted pass, the next pass runs the work from its beginning with the results. The last pass commits its
// decision together with the results that it used, or neither. Results that no committed pass used are dropped and
// never leave this process.

/**
 * The ports of a pass. Every pass of a request gets the same ids and random bytes, so it makes the same key store
 * calls.
 */
interface PassPorts extends Pick<Services, 'keyStore' | 'ids' | 'entropy'> {
  /** See `acquireMutex` of `OperationContext`. */
  readonly acquireMutex?: ((name: string) => Promise<void>) | undefined;
}

/** One pass of the work, in its own unit of work. */
export interface Pass {
  /** Returns the ports of this pass. The key store reads from `em` whether the unit of work holds a connection. */
  portsFor(em: SqlEntityManager): PassPorts;
  /**
   * Returns whether this pass was aborted, because a call has no result yet or took too long. If so, nothing of the
   * pass may be committed or recorded, whatever the work returned.
   */
  mustRunAgain(): boolean;
  /**
   * Releases the mutexes. Call it right after the commit, before any await: other requests may sign with the wallet
   * next.
   */
  hasCommitted(): void;
}

export interface PassOptions {
  /** Wraps a call that may take a long time. Default: makes the call immediately. */
  readonly whileAsking?: <T>(ask: () => Promise<T>) => Promise<T>;
  /**
   * Acquires the mutex with a name: of the wallet to sign with, or of a row that the work locks after it has signed.
   * Returns a handle that releases the mutex and says whether this call had to wait for another request.
   */
  readonly acquireMutex?: (name: string) => Promise<Held>;
}

/**
 * CHOICE: a request fails after this many passes. Processes that sign for the same wallet can overtake each other in
 * every pass, because each signature uses the wallet's next nonce. A batch of users needs one pass for each user.
 */
const MAX_PASSES = 200;

/**
 * CHOICE: after a call that took longer than this (in ms), the work runs once more before it commits, because owners
 * and policies may have changed in the meantime.
 */
const FRESH_MS = 500;

/**
 * The passes of one piece of work:
 *
 * 1. Call `begin`, then run the work in its own unit of work.
 * 2. If `mustRunAgain` is true, call `makeCalls` after the unit of work has ended, and go back to step 1.
 * 3. Call `end`, whatever the result.
 */
export interface Passes {
  begin(): Pass;
  /**
   * Makes the recorded calls that have no result yet.
   *
   * @throws ApiError `unavailable` after too many passes; the error of a key store that is unavailable.
   */
  makeCalls(): Promise<void>;
  /** Releases the mutexes, and wipes the drawn ids and bytes. */
  end(): void;
}

type PassServices = PassPorts & Pick<Services, 'machine'>;

/**
 * Returns the passes of a piece of work. A key store in this process returns its results inside the pass, so there is
 * only one pass then.
 */
export function createPasses(services: PassServices, options: PassOptions = {}): Passes {
  return services.keyStore.isLocal === true ? localPasses(services) : remotePasses(services, options);
}

/** Runs the work in passes until every key store call has a result. */
export async function runInPasses<T>(
  services: PassServices,
  work: (pass: Pass) => Promise<T>,
  options?: PassOptions,
): Promise<T> {
  const passes = createPasses(services, options);
  try {
    for (;;) {
      const pass = passes.begin();
      try {
        return await work(pass);
      } catch (error) {
        if (!pass.mustRunAgain()) throw error;
      }
      await passes.makeCalls();
    }
  } finally {
    passes.end();
  }
}

function localPasses(services: PassPorts): Passes {
  const pass = { portsFor: () => services, mustRunAgain: () => false, hasCommitted: () => undefined };
  return { begin: () => pass, makeCalls: async () => undefined, end: () => undefined };
}

/**
 * Thrown when a pass must be aborted and the work run again. Callers may swallow it, so check `mustRunAgain` as well.
 */
export class RunAgainError extends Error {
  constructor() {
    super('the key store is asked before the work runs again');
    this.name = 'RunAgainError';
  }
}

type Method = {
  [Name in keyof KeyStore]-?: KeyStore[Name] extends (...args: never[]) => Promise<unknown> ? Name : never;
}[keyof KeyStore];

interface Held {
  readonly hasWaited: boolean;
  release(): void;
}

interface Call {
  readonly method: Method;
  readonly args: readonly unknown[];
  result?: CallResult;
}

function remotePasses(
  services: PassServices,
  { whileAsking = immediately, acquireMutex }: PassOptions,
): Passes {
  const calls: Call[] = [];
  const draws = createDraws(services);
  /** The acquired mutexes, by name. */
  const held = new Map<string, Held>();
  let missing: Call[] = [];
  let count = 0;

  /** Acquires a mutex, unless this request has it already. Returns whether it had to wait for another request. */
  async function acquireOnce(name: string): Promise<boolean> {
    if (acquireMutex === undefined || held.has(name)) return false;
    const acquired = await acquireMutex(name);
    held.set(name, acquired);
    return acquired.hasWaited;
  }
  function releaseAll(): void {
    for (const each of held.values()) each.release();
    held.clear();
  }
  const ports = {
    ...draws.ports,
    acquireMutex: async (name: string): Promise<void> => void (await acquireOnce(name)),
  };

  async function ask(call: Call): Promise<void> {
    call.result = await whileAsking(() => resultOf(services.keyStore, call));
    calls.push(call);
  }

  function keyStoreFor(em: SqlEntityManager, run: { isEnded: boolean }): KeyStore {
    const call =
      (method: Method) =>
      async (...given: readonly unknown[]): Promise<unknown> => {
        // Copied, because callers wipe the secrets that they pass and receive.
        const args = copyOf(given);
        let known = calls.find((each) => each.method === method && isDeepStrictEqual(each.args, args));
        if (known === undefined) {
          known = { method, args };
          if (run.isEnded || holdsConnection(em)) {
            missing.push(known);
            throw new RunAgainError();
          }
          const startedMs = services.machine.now();
          await ask(known);
          // After a slow call, a unit of work that may write runs again, because what it has read may be out of date.
          // The entity manager counts it as in a transaction from its beginning, even before the database begins one.
          // A unit of work that only reads is in none.
          if (services.machine.now() - startedMs > FRESH_MS && em.isInTransaction()) {
            run.isEnded = true;
            throw new RunAgainError();
          }
        }
        const result = known.result!;
        if ('error' in result) throw result.error;
        return copyOf(result.value);
      };
    // In production, `services.keyStore` is the client of the signer (`signer-client.ts`): `keyStoreCalling` in
    // `protocol.ts` sends the call, and `callHandlers` there runs the method of `key-operations.ts` in the signer.
    return new Proxy(services.keyStore, {
      get: (keyStore, name) => {
        const member = keyStore[name as keyof KeyStore];
        return typeof member === 'function' ? call(name as Method) : member;
      },
    });
  }

  return {
    begin() {
      count += 1;
      draws.rewind();
      missing = [];
      const run = { isEnded: false };
      return {
        portsFor: (em) => ({ ...ports, keyStore: keyStoreFor(em, run) }),
        mustRunAgain: () => run.isEnded || missing.length > 0,
        hasCommitted: releaseAll,
      };
    },
    async makeCalls() {
      const open = missing;
      missing = [];
      const walletId = open.flatMap(walletOf)[0];
      // Another request held the mutex and may have used the nonce of this call. Make no call; the next pass reads the
      // nonce again.
      const wasTaken = walletId !== undefined && (await acquireOnce(walletId));
      if (!wasTaken) await Promise.all(open.map(ask));
      if (count < MAX_PASSES) return;
      throw new ApiError('unavailable', 'the wallet is used by too many requests at once', {
        headers: { 'retry-after': '1' },
      });
    },
    end() {
      releaseAll();
      draws.forget();
    },
  };
}

function immediately<T>(ask: () => Promise<T>): Promise<T> {
  return ask();
}

type CallResult = { readonly value: unknown } | { readonly error: unknown };

/**
 * Explains a call that is too large: members of an intent may have signed for different host names of the server, and
 * the evidence repeats the body for each of these names.
 */
const TOO_LARGE =
  '/body: too large for the signer under all the names of the server that it was signed for; sign it under one name';

/** Calls the key store. A refusal is a result; an unavailable key store is not. */
async function resultOf(keyStore: KeyStore, { method, args }: Call): Promise<CallResult> {
  try {
    const ask = keyStore[method] as (...args: unknown[]) => Promise<unknown>;
    return { value: await ask.apply(keyStore, [...copyOf(args)]) };
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return { error: isTooLarge(error) ? new ApiError('payload_too_large', TOO_LARGE) : error };
  }
}

function walletOf({ method, args }: Call): string[] {
  if (method !== 'signWithWallet') return [];
  return [(args[1] as Parameters<KeyStore['signWithWallet']>[1]).rowId];
}

/** Returns ids and random bytes that are repeated in the same order after `rewind`. */
function createDraws({ ids, entropy }: Pick<Services, 'ids' | 'entropy'>) {
  let drawn: { readonly kind: string; readonly value: string | Uint8Array }[] = [];
  let next = 0;
  function draw<T extends string | Uint8Array>(kind: string, make: () => T): T {
    const known = drawn[next];
    if (known?.kind !== kind) {
      // The draws after this one are dropped, because a later pass may take another branch and draw different values.
      drawn = drawn.slice(0, next);
      drawn.push({ kind, value: make() });
    }
    const { value } = drawn[next]!;
    next += 1;
    return (typeof value === 'string' ? value : value.slice()) as T;
  }
  const ports: Pick<Services, 'ids' | 'entropy'> = {
    ids: {
      cuid2: () => draw('cuid2', () => ids.cuid2()),
      cuid: () => draw('cuid', () => ids.cuid()),
      userDid: () => draw('userDid', () => ids.userDid()),
      uuid: () => draw('uuid', () => ids.uuid()),
    },
    entropy: { bytes: (length) => draw(`${length} bytes`, () => entropy.bytes(length)) },
  };
  return {
    ports,
    rewind: () => {
      next = 0;
    },
    forget(): void {
      for (const { value } of drawn) if (typeof value !== 'string') value.fill(0);
      drawn = [];
    },
  };
}

/** Returns a deep copy of plain data. Rows of the ORM become plain objects of their columns. */
function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value) as T;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyOf(member)])) as T;
}
