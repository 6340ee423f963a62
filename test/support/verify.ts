import {
  type VerifiedSignatures,
  verifySignatures,
} from '../../src/engine/authorization/request-signatures.ts';

type Search = Parameters<typeof verifySignatures>[0];

/** Runs the whole verification without a pause. */
export function verify(search: Search): VerifiedSignatures {
  const steps = verifySignatures(search);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Returns the total cost of the verification, in verifications of a short payload. */
export function costOf(search: Search): number {
  return [...verifySignatures(search)].reduce((sum, cost) => sum + cost, 0);
}
