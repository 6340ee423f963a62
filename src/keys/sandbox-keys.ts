import { type SeededEntropy, systemEntropy } from '../adapters/runtime.ts';
import { entropyToSeed } from '../engine/crypto/bip39.ts';
import type { ChainType } from '../engine/signing/chains.ts';
import {
  newWalletKey,
  PHRASE_ENTROPY_BYTES,
  type WalletKeyMaterial,
  walletKeyFromSeed,
} from '../engine/signing/wallet-key.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { Clock, Entropy } from '../ports/runtime.ts';
import { keyStoreOn } from './key-operations.ts';
import { createMasterKeyEnvelopes, localMasterKey, type MasterKeyEnvelopes } from './master-keys.ts';

/** A source of entropy for the phrases of new wallets. Each draw has `PHRASE_ENTROPY_BYTES` bytes. */
export interface PhraseEntropy {
  /** Draws the entropy of the next wallet. The caller wipes it. */
  draw(): Uint8Array;
  /** Returns a copy of an upcoming draw, without drawing it: 0 for the next draw, 1 for the one after it. */
  peek(index: number): Uint8Array;
  /** Wipes entropy that was peeked but not drawn. */
  wipe(): void;
}

/** Returns entropy from a deterministic stream. Peeking does not move the position of the stream. */
export function seededPhrases(stream: SeededEntropy): PhraseEntropy {
  return {
    draw: () => stream.bytes(PHRASE_ENTROPY_BYTES),
    peek: (index) => stream.peek(index * PHRASE_ENTROPY_BYTES, PHRASE_ENTROPY_BYTES),
    wipe: () => undefined,
  };
}

/**
 * Returns entropy from a source that cannot be read ahead, such as the operating system. Peeked entropy is kept until
 * it is drawn.
 */
export function randomPhrases(entropy: Entropy): PhraseEntropy {
  const upcoming: Uint8Array[] = [];
  return {
    draw: () => upcoming.shift() ?? entropy.bytes(PHRASE_ENTROPY_BYTES),
    peek(index) {
      while (upcoming.length <= index) upcoming.push(entropy.bytes(PHRASE_ENTROPY_BYTES));
      return upcoming[index]!.slice();
    },
    wipe() {
      for (const bytes of upcoming.splice(0)) bytes.fill(0);
    },
  };
}

// Creating a wallet spends most of its time on 2,048 rounds of PBKDF2 and five steps of BIP-32. Their only input is the
// entropy of the wallet's phrase, so they are computed in advance, while the process is idle.
//
// INVARIANT: prepared keys do not change the entropy that a wallet gets. The sandbox peeks at the entropy of the next
// wallets, prepares keys from it, and draws the entropy only when a wallet is created. If the drawn entropy is that of
// a prepared key, the prepared key is used. If not, it is wiped.

/** Derives the keys of new wallets from phrases. */
export interface PhraseKeys {
  /** Returns the key of the next wallet. It draws the entropy before it awaits anything. */
  draw(chainType: ChainType): Promise<WalletKeyMaterial>;
  /** Wipes the prepared keys and stops preparing more. */
  close(): void;
}

interface PreparedKeysOptions {
  /** The maximum number of prepared keys; 0 prepares none. */
  readonly count: number;
  /** The time since the last draw after which keys are prepared. Default: `QUIET_MS`. */
  readonly quietMs?: number;
}

const QUIET_MS = 500;
/**
 * After a derivation, pause for three times as long as it took, so that deriving uses at most a quarter of a core. The
 * pause also shows whether the process is busy.
 */
const PAUSE_PER_DERIVATION = 3;
/** The process counts as busy if its event loop was active for more than this share of a pause. */
const BUSY = 0.2;
/** The pause if the process is busy. A shorter measurement says little on a machine that others use. */
const BUSY_PAUSE_MS = 100;

interface PreparedKey {
  readonly entropy: Uint8Array;
  readonly derived: Promise<Derived>;
}

interface Derived {
  readonly seed: Uint8Array;
  readonly chainType: ChainType;
  readonly material: WalletKeyMaterial;
}

/**
 * Returns keys from phrases, and prepares up to `count` of them while the process is idle. Preparing does not keep the
 * process alive.
 */
export function preparedKeys(
  phrases: PhraseEntropy,
  { count, quietMs = QUIET_MS }: PreparedKeysOptions,
): PhraseKeys {
  const prepared: PreparedKey[] = [];
  // CHOICE: the whole key is prepared only for the chain type that was drawn last. For other chain types, a prepared
  // key saves deriving the seed.
  let usual: ChainType = 'ethereum';
  let lastDrawnMs = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let isDeriving = false;
  let isClosed = false;
  let loopBefore = performance.eventLoopUtilization();

  function wakeAfter(ms: number): void {
    if (isClosed || isDeriving || timer !== undefined || prepared.length >= count) return;
    loopBefore = performance.eventLoopUtilization();
    timer = setTimeout(() => {
      timer = undefined;
      void prepareOne();
    }, ms);
    timer.unref();
  }

  async function prepareOne(): Promise<void> {
    const startedMs = performance.now();
    const { utilization } = performance.eventLoopUtilization(loopBefore);
    if (startedMs - lastDrawnMs < quietMs) return wakeAfter(quietMs);
    if (utilization > BUSY) return wakeAfter(BUSY_PAUSE_MS);
    dropStale();
    const entropy = phrases.peek(prepared.length);
    const derived = derive(entropy, usual);
    prepared.push({ entropy, derived });
    isDeriving = true;
    // Ignored here, because `draw` awaits the promise again and throws its error.
    await derived.catch(() => undefined);
    isDeriving = false;
    wakeAfter(PAUSE_PER_DERIVATION * (performance.now() - startedMs));
  }

  /** Wipes the prepared keys if the stream was moved, for example by a reset. */
  function dropStale(): void {
    const [first] = prepared;
    if (first !== undefined && !isSame(first.entropy, phrases.peek(0))) prepared.splice(0).forEach(wipe);
  }

  function take(entropy: Uint8Array): PreparedKey | undefined {
    for (let next = prepared.shift(); next !== undefined; next = prepared.shift()) {
      if (isSame(next.entropy, entropy)) return next;
      wipe(next);
    }
    return undefined;
  }

  wakeAfter(quietMs);
  return {
    async draw(chainType) {
      const entropy = phrases.draw();
      const ready = take(entropy);
      usual = chainType;
      lastDrawnMs = performance.now();
      wakeAfter(quietMs);
      if (ready === undefined) return newWalletKey(chainType, entropy);
      try {
        return await keyOf(ready, chainType);
      } finally {
        entropy.fill(0);
      }
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      prepared.splice(0).forEach(wipe);
      phrases.wipe();
    },
  };
}

async function derive(entropy: Uint8Array, chainType: ChainType): Promise<Derived> {
  const seed = await entropyToSeed(entropy);
  return { seed, chainType, material: await walletKeyFromSeed(chainType, { entropy, seed }) };
}

async function keyOf({ entropy, derived }: PreparedKey, chainType: ChainType): Promise<WalletKeyMaterial> {
  try {
    const { seed, material, chainType: preparedType } = await derived;
    try {
      if (preparedType === chainType) return material;
      material.secretBytes.fill(0);
      return await walletKeyFromSeed(chainType, { entropy, seed });
    } finally {
      seed.fill(0);
    }
  } finally {
    entropy.fill(0);
  }
}

function wipe({ entropy, derived }: PreparedKey): void {
  const wipeDerived = ({ seed, material }: Derived): void => {
    for (const bytes of [entropy, seed, material.secretBytes]) bytes.fill(0);
  };
  void derived.then(wipeDerived, () => entropy.fill(0));
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

/** A key store whose master key can be replaced, for example when a snapshot is restored. */
export interface SandboxKeyStore extends KeyStore {
  use(masterKeyHex: string): void;
  /** Wipes the prepared keys and stops preparing more. */
  close(): void;
}

interface SandboxKeyStoreOptions {
  /** The randomness for new keys. Default: the operating system's. */
  readonly keyEntropy?: Entropy;
  readonly clock?: Clock;
  readonly phraseKeys?: PhraseKeys;
}

/**
 * Returns the key store of a sandbox, with one master key. Nonces of seals come from the operating system, even in a
 * seeded sandbox.
 */
export function sandboxKeyStore(
  masterKeyHex: string,
  { keyEntropy = systemEntropy, clock, phraseKeys }: SandboxKeyStoreOptions = {},
): SandboxKeyStore {
  let current = envelopesUnder(masterKeyHex);
  const envelopes: MasterKeyEnvelopes = {
    get currentMasterKeyId() {
      return current.currentMasterKeyId;
    },
    seal: (...sealing) => current.seal(...sealing),
    withSecret: (...opening) => current.withSecret(...opening),
    rewrap: (...rewrapping) => current.rewrap(...rewrapping),
  };
  return {
    ...keyStoreOn(envelopes, keyEntropy, { clock, phraseKeys }),
    isLocal: true,
    use: (replacement) => {
      current = envelopesUnder(replacement);
    },
    close: () => phraseKeys?.close(),
  };
}

function envelopesUnder(masterKeyHex: string): MasterKeyEnvelopes {
  const key = localMasterKey('local', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  return createMasterKeyEnvelopes({ masterKeys: [key], entropy: systemEntropy });
}
