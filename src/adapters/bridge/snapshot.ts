import type { CustomerSnapshot } from '../../ports/fiat-providers.ts';
import { objectOf, objectsOf, requireText, textOf, textsOf } from './answers.ts';
import type { BridgeObject } from './client.ts';

/** A customer of the service, without the personal data in it. */
export function snapshotOf(customer: BridgeObject): CustomerSnapshot {
  const status = requireText(customer, 'status');
  const capabilities = objectOf(customer, 'capabilities');
  const capability = (name: string): string => textOf(capabilities, name) ?? 'pending';
  return {
    id: requireText(customer, 'id'),
    status,
    terms: { status: customer.has_accepted_terms_of_service === true ? 'approved' : 'pending' },
    verification: {
      // The service has one status: that of its links differs only in the word for success.
      status: status === 'active' ? 'approved' : status,
      ...(status === 'rejected' ? { rejectionReasons: reasonsOf(customer) } : {}),
    },
    capabilities: {
      ...{ payin_crypto: capability('payin_crypto'), payout_crypto: capability('payout_crypto') },
      ...{ payin_fiat: capability('payin_fiat'), payout_fiat: capability('payout_fiat') },
    },
    endorsements: objectsOf(customer, 'endorsements').map((endorsement) => ({
      name: requireText(endorsement, 'name'),
      status: requireText(endorsement, 'status'),
      missing: missingOf(objectOf(endorsement, 'requirements').missing),
    })),
    requirementsDue: textsOf(customer, 'requirements_due'),
    futureRequirementsDue: textsOf(customer, 'future_requirements_due'),
  };
}

/** The reasons that may be shown to the customer; those for developers may not. */
function reasonsOf(customer: BridgeObject): readonly string[] {
  return objectsOf(customer, 'rejection_reasons')
    .map((each) => textOf(each, 'reason'))
    .filter((reason) => reason !== undefined);
}

/** The names in `{ all_of: ["a", { any_of: ["b", "c"] }] }`; null if nothing is missing. */
function missingOf(missing: unknown): readonly string[] | null {
  const names = namesIn(missing, 0);
  return names.length === 0 ? null : [...new Set(names)];
}

const MAX_DEPTH = 6;

function namesIn(value: unknown, depth: number): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return [];
  return Object.values(value).flatMap((each) => namesIn(each, depth + 1));
}
