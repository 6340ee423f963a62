import { isDeepStrictEqual } from 'node:util';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, isTooLarge, isUnavailable } from '../errors.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import type { Services } from '../ports/operation-context.ts';
import { holdsConnection } from '../storage/own-kysely.ts';

// A vault elsewhere may hang, and a unit of work that waited for it would keep its connection and its locks meanwhile.
// So work that needs the vault runs in passes. In a pass, a call without an answer is noted and ends the pass: its unit
// of work is rolled back, the vault is asked while nothing is held, and the next pass runs the work again from its
// beginning, with the answer. What the last pass decides is committed together with the answers that it used, or
// not at all; answers that no committed pass used are forgotten, and were never given out.

/** The ports of a pass. Ids and random bytes are the same in all passes of one request, so that its calls are too. */
interface PassPorts extends Pick<Services, 'vault' | 'ids' | 'entropy'> {
  /** As `OperationContext` has it. */
  readonly acquireMutex?: ((name: string) => Promise<void>) | undefined;
}

/** One run of the work, in a unit of work of its own. */
export interface VaultPass {
  /** The ports for the unit of work of `em`. */
  portsFor(em: SqlEntityManager): PassPorts;
  /** Whether a call got no answer. Nothing of the pass may be committed or recorded then, whatever it resulted in. */
  isUnanswered(): boolean;
  /** Call it after the commit, before anything else is waited for: others may sign with the wallet. */
  hasCommitted(): void;
}

export interface PassOptions {
  /** Runs a call that the vault may take long to answer. Default: immediately. */
  readonly whileAsking?: <T>(ask: () => Promise<T>) => Promise<T>;
  /**
   * Acquires the mutex of a name: the wallet that requests sign with after locking what they read, or what they lock
   * after signing. The result releases it, and says whether others were first.
   */
  readonly acquireMutex?: (name: string) => Promise<Held>;
}

/**
 * CHOICE: what a wallet signs depends on its nonce, so passes of several processes for one wallet may outrun each other,
 * and a batch of users draws the keys of one user in each pass. A request that needs more gives up.
 */
const MAX_PASSES = 200;

/**
 * CHOICE: an answer that took longer is used by another pass, because owners and policies may have changed since the
 * request was judged.
 */
const FRESH_MS = 500;

/** Runs the work as often as it needs answers of the vault. A vault in this process answers within the work. */
export function inVaultPasses<T>(
  services: PassPorts & Pick<Services, 'machine'>,
  work: (pass: VaultPass) => Promise<T>,
  options: PassOptions = {},
): Promise<T> {
  return services.vault.isLocal === true ? work(localPass(services)) : inPasses(services, work, options);
}

async function inPasses<T>(
  services: Parameters<typeof inVaultPasses>[0],
  work: (pass: VaultPass) => Promise<T>,
  options: PassOptions,
): Promise<T> {
  const asked = createAsked(services, options);
  try {
    for (let count = 1; count <= MAX_PASSES; count += 1) {
      const pass = asked.begin();
      try {
        return await work(pass);
      } catch (error) {
        if (!pass.isUnanswered()) throw error;
      }
      await asked.answer();
    }
    throw new ApiError('unavailable', 'the wallet is used by too many requests at once', {
      headers: { 'retry-after': '1' },
    });
  } finally {
    asked.end();
  }
}

function localPass(services: PassPorts): VaultPass {
  return { portsFor: () => services, isUnanswered: () => false, hasCommitted: () => undefined };
}

/** Ends a pass. Work may catch it: `isUnanswered` counts. */
export class UnansweredCallError extends Error {
  constructor() {
    super('the vault is asked before the work runs again');
    this.name = 'UnansweredCallError';
  }
}

type Method = {
  [Name in keyof KeyVault]-?: KeyVault[Name] extends (...args: never[]) => Promise<unknown> ? Name : never;
}[keyof KeyVault];

interface Held {
  readonly hasWaited: boolean;
  release(): void;
}

interface Call {
  readonly method: Method;
  readonly args: readonly unknown[];
  answer?: Answer;
}

function createAsked(
  services: Parameters<typeof inVaultPasses>[0],
  { whileAsking = immediately, acquireMutex }: PassOptions,
) {
  const calls: Call[] = [];
  const draws = createDraws(services);
  /** By name. */
  const held = new Map<string, Held>();
  let missing: Call[] = [];

  /** Result: whether others were first. */
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
    call.answer = await whileAsking(() => answerOf(services.vault, call));
    calls.push(call);
  }

  function vaultFor(em: SqlEntityManager, pass: { isEnded: boolean }): KeyVault {
    const call =
      (method: Method) =>
      async (...given: readonly unknown[]): Promise<unknown> => {
        // Callers wipe secrets that they pass and get.
        const args = copyOf(given);
        let known = calls.find((each) => each.method === method && isDeepStrictEqual(each.args, args));
        if (known === undefined) {
          known = { method, args };
          if (pass.isEnded || holdsConnection(em)) {
            missing.push(known);
            throw new UnansweredCallError();
          }
          const startedMs = services.machine.now();
          await ask(known);
          if (services.machine.now() - startedMs > FRESH_MS && em.isInTransaction()) {
            pass.isEnded = true;
            throw new UnansweredCallError();
          }
        }
        const answer = known.answer!;
        if ('error' in answer) throw answer.error;
        return copyOf(answer.value);
      };
    return new Proxy(services.vault, {
      get: (vault, name) => {
        const member = vault[name as keyof KeyVault];
        return typeof member === 'function' ? call(name as Method) : member;
      },
    });
  }

  return {
    begin(): VaultPass {
      draws.rewind();
      missing = [];
      const pass = { isEnded: false };
      return {
        portsFor: (em) => ({ ...ports, vault: vaultFor(em, pass) }),
        isUnanswered: () => pass.isEnded || missing.length > 0,
        hasCommitted: releaseAll,
      };
    },
    /** Asks the vault what the pass did not know. Call it when the unit of work of the pass has ended. */
    async answer(): Promise<void> {
      const open = missing;
      missing = [];
      const walletId = open.flatMap(walletOf)[0];
      // Others that were first have signed meanwhile, so this would sign for a nonce that is taken.
      if (walletId !== undefined && (await acquireOnce(walletId))) return;
      await Promise.all(open.map(ask));
    },
    end(): void {
      releaseAll();
      draws.forget();
    },
  };
}

function immediately<T>(ask: () => Promise<T>): Promise<T> {
  return ask();
}

type Answer = { readonly value: unknown } | { readonly error: unknown };

/** Each name of the server under which members have signed a request repeats its body. */
const TOO_LARGE =
  '/body: too large for the signer under all the names of the server that it was signed for; sign it under one name';

/** A refusal is an answer; an unreachable vault is not. */
async function answerOf(vault: KeyVault, { method, args }: Call): Promise<Answer> {
  try {
    const ask = vault[method] as (...args: unknown[]) => Promise<unknown>;
    return { value: await ask.apply(vault, [...copyOf(args)]) };
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return { error: isTooLarge(error) ? new ApiError('payload_too_large', TOO_LARGE) : error };
  }
}

function walletOf({ method, args }: Call): string[] {
  if (method !== 'signWithWallet') return [];
  return [(args[1] as Parameters<KeyVault['signWithWallet']>[1]).rowId];
}

/** Ids and random bytes that are drawn again in the same order after `rewind`. */
function createDraws({ ids, entropy }: Pick<Services, 'ids' | 'entropy'>) {
  let drawn: { readonly kind: string; readonly value: string | Uint8Array }[] = [];
  let next = 0;
  function draw<T extends string | Uint8Array>(kind: string, make: () => T): T {
    const known = drawn[next];
    if (known?.kind !== kind) {
      // Another pass may take another way.
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

/** A deep copy of plain data; rows of the ORM become plain objects with their columns. */
function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value) as T;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyOf(member)])) as T;
}
