import type { RequestProof } from '../../src/ports/operation-context.ts';

/** The proof of an unsigned request to `https://127.0.0.1`. */
export const unsignedProof: RequestProof = {
  signatures: [],
  canonicalPayloads: () => [],
  expiryMs: undefined,
  userId: undefined,
  noted: {},
  urlOf: (path) => `https://127.0.0.1${path}`,
  payloadsOf: () => [],
};
