import { type SeededEntropy, systemEntropy } from '../adapters/runtime.ts';
import { entropyToSeed } from '../engine/crypto/bip39.ts';
import type { ChainType } from '../engine/signing/chains.ts';
import {
  newWalletKey,
  PHRASE_ENTROPY_BYTES,
  type WalletKeyMaterial,
  walletKeyFromSeed,
} from '../engine/signing/wallet-key.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import type { Clock, Entropy } from '../ports/runtime.ts';
import { vaultOn } from './key-operations.ts';
import { createMasterKeyVault, localMasterKey, type MasterKeyVault } from './master-keys.ts';

/** The entropy of the phrases of new wallets, `PHRASE_ENTROPY_BYTES` each, in their order. */
export interface PhraseEntropy {
  /** The next one. The receiver wipes it. */
  draw(): Uint8Array;
  /** The one that is drawn after the next `index` ones, a copy. */
  peek(index: number): Uint8Array;
  /** Wipes what was peeked and not drawn. */
  wipe(): void;
}

/** Phrases from a deterministic stream. Its position counts what is drawn, whatever was peeked. */
export function seededPhrases(stream: SeededEntropy): PhraseEntropy {
  return {
    draw: () => stream.bytes(PHRASE_ENTROPY_BYTES),
    peek: (index) => stream.peek(index * PHRASE_ENTROPY_BYTES, PHRASE_ENTROPY_BYTES),
    wipe: () => undefined,
  };
}

/** Phrases from a source that gives each byte once, such as the operating system. */
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

// 2,048 rounds of PBKDF2 and five steps of BIP-32 take most of the time in which a wallet is created. They depend on
// nothing but the entropy of the wallet's phrase, so they are done in advance, while the process has nothing else to do.
//
// INVARIANT: which entropy a wallet gets does not depend on what is prepared. It is drawn when the wallet is created;
// what was prepared for it is used, and what was prepared for other entropy is wiped.

/** The keys of new wallets that have a phrase. */
export interface PhraseKeys {
  /** The entropy is drawn before anything is awaited. */
  draw(chainType: ChainType): Promise<WalletKeyMaterial>;
  /** Wipes what is prepared, and prepares no more. */
  close(): void;
}

interface PreparedKeysOptions {
  /** The most keys that are prepared; 0: none. */
  readonly count: number;
  /** How long nothing happens after the start and after a key was drawn. */
  readonly quietMs?: number;
}

const QUIET_MS = 500;
/** Deriving takes a quarter of a core at most; the pauses show whether the process is busy. */
const PAUSE_PER_DERIVATION = 3;
/** The share of a pause in which the event loop had something to do. */
const BUSY = 0.2;
/** Longer than the other pauses: on a machine that others use too, a short one may seem busy. */
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

/** Keys of phrases, of which some are derived while the process is idle. They do not keep it alive. */
export function preparedKeys(
  phrases: PhraseEntropy,
  { count, quietMs = QUIET_MS }: PreparedKeysOptions,
): PhraseKeys {
  const prepared: PreparedKey[] = [];
  // CHOICE: keys are prepared for the chain type that was drawn last. For the others, the seed is.
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
    // An error is thrown when the key is drawn.
    await derived.catch(() => undefined);
    isDeriving = false;
    wakeAfter(PAUSE_PER_DERIVATION * (performance.now() - startedMs));
  }

  /** The stream may have been moved since, for example by a reset. */
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

/** A vault whose master key is replaced together with all that it has sealed. */
export interface SandboxVault extends KeyVault {
  use(masterKeyHex: string): void;
  /** Wipes the keys that were prepared. */
  close(): void;
}

interface SandboxVaultOptions {
  /** Default: that of the system. */
  readonly keyEntropy?: Entropy;
  readonly clock?: Clock;
  readonly phraseKeys?: PhraseKeys;
}

/** The vault of a sandbox, with a single master key. Seals with system randomness even in a seeded sandbox. */
export function sandboxVault(
  masterKeyHex: string,
  { keyEntropy = systemEntropy, clock, phraseKeys }: SandboxVaultOptions = {},
): SandboxVault {
  let current = envelopesUnder(masterKeyHex);
  const envelopes: MasterKeyVault = {
    get currentMasterKeyId() {
      return current.currentMasterKeyId;
    },
    seal: (...sealing) => current.seal(...sealing),
    withSecret: (...opening) => current.withSecret(...opening),
    rewrap: (...rewrapping) => current.rewrap(...rewrapping),
  };
  return {
    ...vaultOn(envelopes, keyEntropy, { clock, phraseKeys }),
    isLocal: true,
    use: (replacement) => {
      current = envelopesUnder(replacement);
    },
    close: () => phraseKeys?.close(),
  };
}

function envelopesUnder(masterKeyHex: string): MasterKeyVault {
  const key = localMasterKey('local', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  return createMasterKeyVault({ masterKeys: [key], entropy: systemEntropy });
}
