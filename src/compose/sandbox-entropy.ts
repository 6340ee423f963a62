import { type EntropyPosition, seededEntropy, systemEntropy } from '../adapters/entropy.ts';
import { requestIdsFrom } from '../http/request-ids.ts';
import type { Entropy } from '../ports/entropy.ts';

/** Where the streams of a seeded sandbox are. */
interface EntropyPositions {
  readonly main: EntropyPosition;
  readonly requests: EntropyPosition;
  readonly faults: EntropyPosition;
}

/** The randomness of a sandbox. Request ids and faults have their own, so that they change no other ids. */
export interface SandboxEntropy {
  readonly entropy: Entropy;
  readonly faultEntropy: Entropy;
  /** For the keys of the audit log, which are drawn once. */
  readonly auditEntropy: Entropy;
  newRequestId(): string;
  /** Null without a seed. Request ids continue at the position, those that were drawn in advance are dropped. */
  position(): EntropyPositions | null;
  /** Continues at a position; without a seed, nothing changes. */
  goTo(positions: EntropyPositions | null): void;
}

/**
 * The randomness for a seed.
 *
 * CHOICE: a seeded sandbox with stored data derives its entropy from the seed and the number of the start. From the
 * seed alone it would draw ids that already exist in the data.
 */
export function sandboxEntropy(seed: string | undefined, starts: number): SandboxEntropy {
  if (seed === undefined) {
    const newRequestId = requestIdsFrom(systemEntropy);
    const drawn = {
      entropy: systemEntropy,
      faultEntropy: systemEntropy,
      auditEntropy: systemEntropy,
      newRequestId,
    };
    return { ...drawn, position: () => null, goTo: () => undefined };
  }
  const text = starts === 1 ? seed : `${seed}\n${starts}`;
  const [entropy, requestEntropy] = [seededEntropy(text), seededEntropy(`${text}\nrequests`)];
  const faultEntropy = seededEntropy(`${text}\nfaults`);
  let newRequestId = requestIdsFrom(requestEntropy);
  return {
    entropy,
    faultEntropy,
    auditEntropy: seededEntropy(`${text}\naudit`),
    newRequestId: () => newRequestId(),
    position() {
      newRequestId = requestIdsFrom(requestEntropy);
      const [main, requests, faults] = [entropy, requestEntropy, faultEntropy].map((each) => each.position());
      return { main: main!, requests: requests!, faults: faults! };
    },
    goTo(positions) {
      if (positions === null) return;
      entropy.goTo(positions.main);
      requestEntropy.goTo(positions.requests);
      faultEntropy.goTo(positions.faults);
      newRequestId = requestIdsFrom(requestEntropy);
    },
  };
}
