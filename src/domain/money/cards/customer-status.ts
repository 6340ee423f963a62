import type { CardCustomer } from '../../../generated/schemas.ts';
import type { CardProgram } from '../../../ports/card-issuers.ts';
import type { StoredSnapshot } from '../fiat-customers/fiat-customer.entity.ts';
import type { StoredCardCustomer } from './card-customer.entity.ts';

/** Everything that the status of a customer follows from. */
export interface CustomerFacts {
  readonly accepted: Pick<StoredCardCustomer, 'disclosureAcceptedAtMs' | 'acceptedAgreements'>;
  readonly program: CardProgram;
  /** What the provider that verifies customers said last. */
  readonly snapshot: StoredSnapshot;
  /** The endorsement that the issuer asks for. */
  readonly endorsement: string;
  readonly links: { readonly terms?: string | undefined; readonly verification?: string | undefined };
}

/**
 * How far a user has come, with what the next step needs.
 *
 * CHOICE: the user's own consents come first, then the provider's terms, then the verification. A rejection or
 * suspension shows whatever else is missing.
 */
export function customerStatus(facts: CustomerFacts): CardCustomer {
  const { accepted, program, snapshot, links } = facts;
  const refused = refusedStatus(facts);
  if (refused !== undefined) return refused;
  if (accepted.disclosureAcceptedAtMs === null) {
    return { status: 'electronic_disclosure_required', disclosure_url: program.disclosureUrl };
  }
  const acceptedIds = JSON.parse(accepted.acceptedAgreements) as string[];
  if (!program.bank.agreements.every(({ id }) => acceptedIds.includes(id))) {
    const { name, agreements } = program.bank;
    const bank_info = { name, agreements: agreements.map((agreement) => ({ ...agreement })) };
    return { status: 'bank_terms_required', bank_info };
  }
  if (snapshot.terms !== 'approved') return { status: 'provider_terms_required', tos_url: links.terms ?? '' };
  return verifiedStatus(facts);
}

/** Nothing that the user can do changes these. */
function refusedStatus({ snapshot, endorsement }: CustomerFacts): CardCustomer | undefined {
  if (snapshot.verification === 'rejected') {
    const reasons = snapshot.rejectionReasons ?? [];
    return {
      status: 'rejected',
      ...(reasons.length === 0 ? {} : { rejection_reasons: reasons.map((reason) => ({ reason })) }),
    };
  }
  const isRevoked = statusOf(snapshot, endorsement) === 'revoked';
  if (snapshot.status === 'offboarded' || isRevoked) return { status: 'rejected' };
  return snapshot.status === 'paused' ? { status: 'error' } : undefined;
}

function verifiedStatus({ snapshot, endorsement, links }: CustomerFacts): CardCustomer {
  if (snapshot.verification === 'under_review') return { status: 'under_review' };
  if (snapshot.status === 'active' && statusOf(snapshot, endorsement) === 'approved') {
    return { status: 'ready' };
  }
  const isOpen = snapshot.verification !== 'approved' || snapshot.requirementsDue.length > 0;
  return isOpen ? { status: 'kyc_required', kyc_url: links.verification ?? '' } : { status: 'pending' };
}

function statusOf({ endorsements }: StoredSnapshot, name: string): string | undefined {
  return endorsements.find((one) => one.name === name)?.status;
}
