import type {
  CustomerOrder,
  CustomerSnapshot,
  FiatProvider,
  FiatRefusal,
  Submission,
} from '../../../ports/fiat.ts';
import { type CustomerRow, findCustomer, putCustomer, type VerificationOutcome } from './customer-rows.ts';
import { type FiatParts, refuse, STEP_MS } from './parts.ts';

type IdentityOffice = Pick<
  FiatProvider,
  'openCustomer' | 'termsLink' | 'verificationLink' | 'submit' | 'customer'
>;

/** A tester's decision about a customer. */
export interface Decision {
  readonly outcome: VerificationOutcome | 'terms_accepted' | 'paused' | 'offboarded';
  readonly reasons?: readonly string[] | undefined;
  readonly requirementsDue?: readonly string[] | undefined;
  readonly endorsements?: readonly { readonly name: string; readonly status: string }[] | undefined;
}

/** CHOICE: what an incomplete customer must still provide, unless a tester says otherwise. */
const INCOMPLETE = ['proof_of_address'];

/**
 * Simulates the identity office. It decides two seconds after a submission: `approved`, or the outcome that a special
 * name selects. It has no timer; each call first makes the decisions that are due.
 */
export function simulateIdentityOffice(parts: FiatParts): IdentityOffice {
  const { store } = parts;
  return {
    openCustomer: async (order) => store.atomically(() => viewOf(parts, openOrFind(parts, order))),
    termsLink: async (id, redirectUri) => store.atomically(() => linkOf(parts, id, 'terms', redirectUri)),
    verificationLink: async (id, { redirectUri }) =>
      store.atomically(() => linkOf(parts, id, 'verification', redirectUri)),
    submit: async (submission) => store.atomically(() => take(parts, submission)),
    customer: async (id) =>
      store.atomically(() => {
        const row = findCustomer(parts, 'id', id);
        return row && viewOf(parts, row);
      }),
  };
}

/** Applies a tester's decision about a customer immediately. Returns undefined for an unknown customer. */
export function decide(parts: FiatParts, id: string, decision: Decision): CustomerSnapshot | undefined {
  return parts.store.atomically(() => {
    const row = findCustomer(parts, 'id', id);
    return row && viewOf(parts, putCustomer(parts, decided(row, decision)));
  });
}

/** The content of the hosted page about a customer. */
export interface HostedPage {
  readonly kind: CustomerRow['kind'];
  readonly snapshot: CustomerSnapshot;
  readonly redirectUri: string | null;
}

/** The actions that a customer can take on the hosted page. */
export type PageAction = 'accept_terms' | 'complete' | 'decline';

/** Returns the content of the hosted page, or undefined for an unknown customer. */
export function hostedPage(parts: FiatParts, id: string): HostedPage | undefined {
  return parts.store.atomically(() => {
    const row = findCustomer(parts, 'id', id);
    return row && { kind: row.kind, snapshot: viewOf(parts, row), redirectUri: row.redirectUri };
  });
}

/**
 * Applies a customer's action on the hosted page: accepting the terms, or completing or declining the verification.
 * The office then decides in the same way as when the data is submitted through the API. Returns false if the page no
 * longer offers the action.
 */
export function useHostedPage(parts: FiatParts, id: string, action: PageAction): boolean {
  return parts.store.atomically(() => {
    const row = findCustomer(parts, 'id', id);
    if (row === undefined) return false;
    // If a decision is due, `viewOf` makes it first.
    const { terms, verification } = viewOf(parts, row);
    const { link } = action === 'accept_terms' ? terms : verification;
    if (link === undefined) return false;
    const current = findCustomer(parts, 'id', id)!;
    const outcome = action === 'decline' ? 'rejected' : 'approved';
    const next: CustomerRow =
      action === 'accept_terms'
        ? { ...current, terms: 'approved' }
        : underReview(parts, { ...current, outcome });
    putCustomer(parts, next);
    return true;
  });
}

function decided(row: CustomerRow, decision: Decision): CustomerRow {
  const { outcome, reasons = [], requirementsDue, endorsements } = decision;
  const marked = endorsements === undefined ? row : { ...row, endorsements: mark(row, endorsements) };
  switch (outcome) {
    case 'terms_accepted':
      return { ...marked, terms: 'approved' };
    case 'paused':
    case 'offboarded':
      return { ...marked, standing: outcome, reasons };
    default: {
      // CHOICE: an approval by a tester implies that the terms are accepted.
      const terms = outcome === 'approved' ? 'approved' : row.terms;
      const requirements = requirementsDue ?? (outcome === 'incomplete' ? INCOMPLETE : []);
      return {
        ...{ ...marked, terms, requirements, reasons },
        ...{ verification: outcome, standing: 'good', outcome, decidesMs: null },
      };
    }
  }
}

function mark(row: CustomerRow, changes: CustomerRow['endorsements']): CustomerRow['endorsements'] {
  const kept = row.endorsements.filter(({ name }) => !changes.some((change) => change.name === name));
  return [...kept, ...changes];
}

function openOrFind(parts: FiatParts, order: CustomerOrder | Submission): CustomerRow {
  const known =
    order.id === undefined
      ? findCustomer(parts, 'reference', order.reference)
      : findCustomer(parts, 'id', order.id);
  const row = known ?? newCustomer(parts, order);
  const asked = (order.endorsements ?? []).filter(
    (name) => !row.endorsements.some((one) => one.name === name),
  );
  const redirectUri = ('redirectUri' in order ? order.redirectUri : undefined) ?? row.redirectUri;
  return putCustomer(parts, {
    ...row,
    redirectUri,
    terms: order.clientAgreementId === undefined ? row.terms : 'approved',
    endorsements: [...row.endorsements, ...asked.map((name) => ({ name, status: '' }))],
  });
}

function newCustomer({ ids }: FiatParts, { reference, kind, endorsements }: CustomerOrder | Submission) {
  return {
    ...{ id: ids.uuid(), reference, kind, token: ids.uuid().replaceAll('-', '') },
    ...{ terms: 'pending', verification: 'not_started', standing: 'good', outcome: 'approved' },
    ...{ reasons: [], requirements: [], provided: [], decidesMs: null, redirectUri: null },
    endorsements: endorsements === undefined ? [{ name: 'base', status: '' }] : [],
  } satisfies CustomerRow;
}

function linkOf(
  parts: FiatParts,
  id: string,
  page: 'terms' | 'verification',
  redirectUri: string | undefined,
): string | undefined {
  const row = findCustomer(parts, 'id', id);
  if (row === undefined) return undefined;
  if (redirectUri !== undefined) putCustomer(parts, { ...row, redirectUri });
  return `${parts.pageOf(row.token)}#${page}`;
}

function take(parts: FiatParts, submission: Submission): CustomerSnapshot | FiatRefusal {
  const { data } = submission;
  const number = (data.identifying_information ?? []).findIndex(({ number }) => number === REFUSED_NUMBER);
  if (number !== -1) {
    return refuse('data', 'the document number is not valid', `/identifying_information/${number}/number`);
  }
  const row = openOrFind(parts, submission);
  const provided = [...new Set([...row.provided, ...Object.keys(data)])].sort();
  const outcome = sentinelOutcome(submission) ?? row.outcome;
  if (row.verification === 'approved' || row.verification === 'under_review') {
    return viewOf(parts, putCustomer(parts, { ...row, provided, outcome }));
  }
  return viewOf(parts, putCustomer(parts, underReview(parts, { ...row, provided, outcome })));
}

/** The simulated provider rejects data with this special document number. */
const REFUSED_NUMBER = 'REFUSED';

const sentinels: Readonly<Record<string, VerificationOutcome>> = {
  Review: 'under_review',
  Denied: 'rejected',
  Incomplete: 'incomplete',
};

/**
 * Returns the outcome that a special last name, or first word of the business name, selects: `approved` for any other
 * name. Undefined if the name is missing.
 */
function sentinelOutcome(submission: Submission): VerificationOutcome | undefined {
  if (submission.kind === 'person') {
    const { last_name: name } = submission.data;
    return name === undefined ? undefined : outcomeOf(name);
  }
  const { business_legal_name: name } = submission.data;
  return name === undefined ? undefined : outcomeOf(name.split(' ')[0] ?? '');
}

function outcomeOf(name: string): VerificationOutcome {
  return Object.hasOwn(sentinels, name) ? sentinels[name]! : 'approved';
}

function underReview({ clock }: FiatParts, row: CustomerRow): CustomerRow {
  return {
    ...{ ...row, verification: 'under_review', reasons: [], requirements: [] },
    decidesMs: clock.now() + STEP_MS,
  };
}

/** Makes the decision if it is due, and returns the customer. */
function viewOf(parts: FiatParts, found: CustomerRow): CustomerSnapshot {
  const isDue = found.decidesMs !== null && found.decidesMs <= parts.clock.now();
  const row = isDue ? putCustomer(parts, outcomeDue(found)) : found;
  const status = statusOf(row);
  const requirementsDue = [
    ...row.requirements,
    ...(row.verification === 'approved' && row.terms === 'pending' ? ['terms_of_service'] : []),
  ];
  const page = parts.pageOf(row.token);
  const isOpen = row.verification === 'not_started' || row.verification === 'incomplete';
  const capability = capabilityOf(status);
  return {
    id: row.id,
    status,
    terms: { status: row.terms, ...(row.terms === 'pending' ? { link: `${page}#terms` } : {}) },
    verification: {
      status: row.verification,
      ...(isOpen ? { link: `${page}#verification` } : {}),
      ...(row.verification === 'rejected' ? { rejectionReasons: row.reasons } : {}),
    },
    capabilities: {
      ...{ payin_crypto: capability, payout_crypto: capability },
      ...{ payin_fiat: capability, payout_fiat: capability },
    },
    endorsements: row.endorsements.map(({ name, status: own }) => ({
      name,
      status: own === '' ? endorsementOf(status) : own,
      missing: requirementsDue.length === 0 ? null : requirementsDue,
    })),
    requirementsDue,
    futureRequirementsDue: [],
  };
}

function outcomeDue(row: CustomerRow): CustomerRow {
  const reasons = row.outcome === 'rejected' ? ['the submitted data could not be verified'] : [];
  const requirements = row.outcome === 'incomplete' ? INCOMPLETE : [];
  return { ...row, verification: row.outcome, reasons, requirements, decidesMs: null };
}

function statusOf({ standing, verification, terms }: CustomerRow): string {
  if (standing !== 'good') return standing;
  if (verification !== 'approved') return verification;
  return terms === 'approved' ? 'active' : 'incomplete';
}

function capabilityOf(status: string): string {
  if (status === 'active' || status === 'rejected') return status;
  return status === 'paused' || status === 'offboarded' ? 'inactive' : 'pending';
}

function endorsementOf(status: string): string {
  if (status === 'active') return 'approved';
  return status === 'offboarded' ? 'revoked' : 'incomplete';
}
