import { type EntropyPosition, seededEntropy, systemEntropy } from '../adapters/runtime.ts';
import { type PhraseEntropy, randomPhrases, seededPhrases } from '../keys/sandbox-keys.ts';
import type { Entropy } from '../ports/runtime.ts';
import { requestIdsFrom } from '../server/transport-guards.ts';

/** The positions in the random streams of a seeded sandbox. */
interface EntropyPositions {
  readonly main: EntropyPosition;
  readonly requests: EntropyPosition;
  readonly faults: EntropyPosition;
  /** Undefined in snapshots of versions in which phrases had no stream of their own. */
  readonly phrases?: EntropyPosition | undefined;
}

/**
 * The randomness of a sandbox. Request ids and faults have separate streams, so that they do not change other ids.
 * Wallet phrases have one too, so that the next phrases are known in advance.
 */
export interface SandboxEntropy {
  readonly entropy: Entropy;
  readonly faultEntropy: Entropy;
  readonly phraseEntropy: PhraseEntropy;
  /** The entropy for the keys of the audit log, which are created once. */
  readonly auditEntropy: Entropy;
  newRequestId(): string;
  /** Returns the current positions, or null without a seed. Request ids that were generated in advance are dropped. */
  position(): EntropyPositions | null;
  /**
   * Sets the positions. Without a seed, does nothing.
   *
   * CHOICE: the stream of request ids never moves back. A reset or a snapshot keeps the recorded requests, and
   * `custos why` needs unique ids.
   */
  goTo(positions: EntropyPositions | null): void;
  /** Runs work whose ids and keys come from a separate stream, so that it does not change the ids and keys after it. */
  apart<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/**
 * Creates the randomness for a seed.
 *
 * CHOICE: a seeded sandbox with stored data derives its entropy from the seed and from the number of its starts. With
 * only the seed, it would generate ids that already exist in the data.
 */
export function sandboxEntropy(seed: string | undefined, starts: number): SandboxEntropy {
  if (seed === undefined) {
    const newRequestId = requestIdsFrom(systemEntropy);
    const drawn = {
      entropy: systemEntropy,
      faultEntropy: systemEntropy,
      phraseEntropy: randomPhrases(systemEntropy),
      auditEntropy: systemEntropy,
      newRequestId,
    };
    return { ...drawn, position: () => null, goTo: () => undefined, apart };
  }
  const text = starts === 1 ? seed : `${seed}\n${starts}`;
  const [entropy, requestEntropy] = [seededEntropy(text), seededEntropy(`${text}\nrequests`)];
  const faultEntropy = seededEntropy(`${text}\nfaults`);
  const phraseEntropy = seededEntropy(phraseSeedOf(text));
  let newRequestId = requestIdsFrom(requestEntropy);
  const moveTo = ({ main, phrases }: Pick<EntropyPositions, 'main' | 'phrases'>): void => {
    entropy.goTo(main);
    phraseEntropy.goTo(phrases ?? { seed: phraseSeedOf(main.seed), drawn: 0 });
  };
  return {
    async apart(name, work) {
      const before = { main: entropy.position(), phrases: phraseEntropy.position() };
      moveTo({ main: { seed: `${before.main.seed}\n${name}`, drawn: 0 } });
      try {
        return await work();
      } finally {
        moveTo(before);
      }
    },
    entropy,
    faultEntropy,
    phraseEntropy: seededPhrases(phraseEntropy),
    auditEntropy: seededEntropy(`${text}\naudit`),
    newRequestId: () => newRequestId(),
    position() {
      newRequestId = requestIdsFrom(requestEntropy);
      return {
        main: entropy.position(),
        requests: requestEntropy.position(),
        faults: faultEntropy.position(),
        phrases: phraseEntropy.position(),
      };
    },
    goTo(positions) {
      if (positions === null) return;
      moveTo(positions);
      const now = requestEntropy.position();
      const { seed: ofSeed, drawn } = positions.requests;
      if (ofSeed === now.seed && drawn > now.drawn) requestEntropy.goTo(positions.requests);
      faultEntropy.goTo(positions.faults);
      newRequestId = requestIdsFrom(requestEntropy);
    },
  };
}

/** Runs the work. Without a seed, there are no streams to separate. */
function apart<T>(_: string, work: () => Promise<T>): Promise<T> {
  return work();
}

function phraseSeedOf(seed: string): string {
  return `${seed}\nphrases`;
}
