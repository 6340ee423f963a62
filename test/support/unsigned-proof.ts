import type { Authorization } from '../../src/domain/access/owners/require-authorization.ts';
import type { RequestProof } from '../../src/ports/operation-context.ts';

/** The proof of an unsigned request to `https://127.0.0.1`. */
export const unsignedProof: RequestProof = {
  signatures: [],
  canonicalPayloads: () => [],
  expiryMs: undefined,
  userId: undefined,
  urlOf: (path) => `https://127.0.0.1${path}`,
  payloadsOf: () => [],
};

/** How every request about a resource without an owner is authorized. */
export const withoutOwner: Authorization = { party: { kind: 'none' }, covered: [] };
