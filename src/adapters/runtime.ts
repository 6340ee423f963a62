import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import type { Clock, Entropy, Ids } from '../ports/runtime.ts';

export const systemClock: Clock = { now: () => Date.now() };

/** The state of a clock relative to the system clock. */
interface ClockState {
  /** The time at which the clock is frozen; null for a running clock. */
  readonly frozenAtMs: number | null;
  /** The offset of a running clock from the system time, ms. */
  readonly offsetMs: number;
}

/** A clock that can be frozen, set and moved, in Unix milliseconds. */
export interface AdjustableClock extends Clock {
  readonly isFrozen: boolean;
  /** Sets the time. A running clock continues from there. */
  set(nowMs: number): void;
  /** Moves the time by `durationMs`, which may be negative. */
  advance(durationMs: number): void;
  freeze(): void;
  resume(): void;
  /** Restores the initial time and the initial frozen state. */
  reset(): void;
  state(): ClockState;
  restore(state: ClockState): void;
}

interface AdjustableClockOptions {
  /** The initial time. By default, the system time. */
  startMs?: number;
  frozen?: boolean;
  machine?: Clock;
}

/**
 * Creates an adjustable clock.
 *
 * NOTE: a running clock is the system clock plus an offset, so it stays correct after the machine was suspended.
 */
export function adjustableClock(options: AdjustableClockOptions = {}): AdjustableClock {
  const machine = options.machine ?? systemClock;
  let frozenAtMs: number | undefined;
  let offsetMs = 0;

  const now = (): number => frozenAtMs ?? machine.now() + offsetMs;
  const set = (nowMs: number): void => {
    if (frozenAtMs === undefined) offsetMs = nowMs - machine.now();
    else frozenAtMs = nowMs;
  };
  const freeze = (): void => {
    frozenAtMs = now();
  };
  const resume = (): void => {
    if (frozenAtMs === undefined) return;
    offsetMs = frozenAtMs - machine.now();
    frozenAtMs = undefined;
  };
  const reset = (): void => {
    frozenAtMs = undefined;
    offsetMs = 0;
    if (options.startMs !== undefined) set(options.startMs);
    // `freeze()` is not used here, because the system clock may have advanced by a millisecond since `set`.
    if (options.frozen === true) frozenAtMs = options.startMs ?? machine.now();
  };

  reset();
  return {
    now,
    set,
    freeze,
    resume,
    reset,
    state: () => ({ frozenAtMs: frozenAtMs ?? null, offsetMs }),
    restore(state) {
      frozenAtMs = state.frozenAtMs ?? undefined;
      offsetMs = state.offsetMs;
    },
    advance: (durationMs) => set(now() + durationMs),
    get isFrozen() {
      return frozenAtMs !== undefined;
    },
  };
}

const letters = 'abcdefghijklmnopqrstuvwxyz';
const alphanumerics = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * Draws `length` uniformly distributed characters of `alphabet`. It discards bytes at or above the largest multiple
 * of the alphabet's length, which would favor some characters.
 */
function randomCharacters(entropy: Entropy, alphabet: string, length: number): string {
  const limit = 256 - (256 % alphabet.length);
  let characters = '';
  while (characters.length < length) {
    for (const byte of entropy.bytes(length - characters.length)) {
      if (byte < limit) characters += alphabet[byte % alphabet.length];
    }
  }
  return characters;
}

/** Draws a UUID (RFC 9562 §5.4): 122 random bits, version 4, variant 10. */
function uuidVersion4(entropy: Entropy): string {
  const bytes = Buffer.from(entropy.bytes(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * Generates identifiers with more than 120 bits of entropy each.
 *
 * INVARIANT: nothing gives the second and the third character a meaning, nor the first three digits of a UUID. They are
 * reserved for the bucket of an app that is spread over several cells (docs/decisions/0023-the-bucket-in-ids.md).
 */
export function makeIds(entropy: Entropy): Ids {
  const cuid = (): string => `c${randomCharacters(entropy, alphanumerics, 24)}`;
  return {
    cuid2: () => randomCharacters(entropy, letters, 1) + randomCharacters(entropy, alphanumerics, 23),
    cuid,
    userDid: () => `did:service:${cuid()}`,
    uuid: () => uuidVersion4(entropy),
  };
}

/** Random bytes from the operating system. */
export const systemEntropy: Entropy = {
  bytes: (length) => new Uint8Array(randomBytes(length)),
};

/** The position in a deterministic stream, which determines the next bytes. */
export interface EntropyPosition {
  readonly seed: string;
  /** The number of bytes before the position. */
  readonly drawn: number;
}

/** A deterministic byte stream for a seed. */
export interface SeededEntropy extends Entropy {
  position(): EntropyPosition;
  /** Continues at a position, which may belong to another seed. */
  goTo(position: EntropyPosition): void;
  /** Returns the bytes after the next `skipped` bytes. Later calls still draw them. */
  peek(skipped: number, length: number): Uint8Array;
}

/** ChaCha20 produces 64 bytes of key stream from each value of its 32-bit counter. */
const BLOCK_BYTES = 64;

/**
 * Returns the ChaCha20 key stream (RFC 8439 §2.4) under the key SHA-256(seed). The same seed always yields the same
 * bytes.
 *
 * NOTE: never use it in production. The seed reveals every key and id derived from it.
 */
export function seededEntropy(seed: string): SeededEntropy {
  let position = { seed, drawn: 0 };
  let cipher = cipherAt(position);
  return {
    bytes(length) {
      position.drawn += length;
      return new Uint8Array(cipher.update(new Uint8Array(length)));
    },
    position: () => ({ ...position }),
    goTo(wanted) {
      position = { ...wanted };
      cipher = cipherAt(position);
    },
    peek(skipped, length) {
      const later = cipherAt({ seed: position.seed, drawn: position.drawn + skipped });
      return new Uint8Array(later.update(new Uint8Array(length)));
    },
  };
}

function cipherAt({ seed, drawn }: EntropyPosition) {
  const key = createHash('sha256').update(seed, 'utf8').digest();
  // The 4-byte block counter || the 12-byte nonce, all zero, because the key is used for only one stream.
  const start = Buffer.alloc(16);
  start.writeUInt32LE(Math.floor(drawn / BLOCK_BYTES));
  const cipher = createCipheriv('chacha20', key, start);
  cipher.update(new Uint8Array(drawn % BLOCK_BYTES));
  return cipher;
}
