import type { Entropy } from '../../ports/entropy.ts';
import { PHRASE_ENTROPY_BYTES } from '../../signing/wallet-key.ts';
import type { SeededEntropy } from '../entropy.ts';

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
