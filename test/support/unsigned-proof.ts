import type { RequestProof } from '../../src/operation-context.ts';

/** What a request proves that carries no signature, sent to `https://127.0.0.1`. */
export const unsignedProof: RequestProof = {
  signatures: [],
  canonicalPayloads: () => [],
  expiryMs: undefined,
  userId: undefined,
  urlOf: (path) => `https://127.0.0.1${path}`,
  payloadsOf: () => [],
};
