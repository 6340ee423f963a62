import type { CustomerKind } from '../../../ports/fiat.ts';
import type { FiatParts } from './parts.ts';

export type VerificationOutcome = 'approved' | 'rejected' | 'incomplete' | 'under_review';

/**
 * A customer of the identity office. It contains no personal data: `provided` lists only the names of submitted
 * fields.
 */
export interface CustomerRow {
  readonly id: string;
  readonly reference: string;
  readonly kind: CustomerKind;
  /** The secret part of the links to the hosted page. */
  readonly token: string;
  readonly terms: 'pending' | 'approved';
  readonly verification: 'not_started' | VerificationOutcome;
  readonly standing: 'good' | 'paused' | 'offboarded';
  readonly reasons: readonly string[];
  readonly requirements: readonly string[];
  /** Names with statuses. An empty status stands for the customer's own status. */
  readonly endorsements: readonly { readonly name: string; readonly status: string }[];
  readonly provided: readonly string[];
  /** The decision that will be made at `decidesMs`. */
  readonly outcome: VerificationOutcome;
  readonly decidesMs: number | null;
  readonly redirectUri: string | null;
}

interface StoredCustomer {
  id: string;
  reference: string;
  kind: CustomerKind;
  token: string;
  terms: CustomerRow['terms'];
  verification: CustomerRow['verification'];
  standing: CustomerRow['standing'];
  reasons: string;
  requirements: string;
  endorsements: string;
  provided: string;
  outcome: VerificationOutcome;
  decides_ms: number | null;
  redirect_uri: string | null;
}

type CustomerKey = 'id' | 'reference';

export function findCustomer(
  { store, environment }: FiatParts,
  key: CustomerKey,
  value: string,
): CustomerRow | undefined {
  const row = store.first<StoredCustomer>(
    `select * from fiat_customers where environment = ? and ${key} = ?`,
    ...[environment, value],
  );
  return row && readRow(row);
}

/**
 * Finds the customer whose hosted page has this token, and the customer's environment. Returns undefined if there is
 * none.
 */
export function findByToken(
  store: FiatParts['store'],
  token: string,
): { environment: FiatParts['environment']; id: string } | undefined {
  return store.first('select environment, id from fiat_customers where token = ?', token);
}

/** Stores a new or changed customer. */
export function putCustomer({ store, environment }: FiatParts, row: CustomerRow): CustomerRow {
  store.run(
    'insert or replace into fiat_customers values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ...[environment, row.id, row.reference, row.kind, row.token, row.terms, row.verification, row.standing],
    ...[JSON.stringify(row.reasons), JSON.stringify(row.requirements), JSON.stringify(row.endorsements)],
    ...[JSON.stringify(row.provided), row.outcome, row.decidesMs, row.redirectUri],
  );
  return row;
}

function readRow({ decides_ms, redirect_uri, ...row }: StoredCustomer): CustomerRow {
  return {
    ...row,
    reasons: JSON.parse(row.reasons),
    requirements: JSON.parse(row.requirements),
    endorsements: JSON.parse(row.endorsements),
    provided: JSON.parse(row.provided),
    decidesMs: decides_ms,
    redirectUri: redirect_uri,
  };
}
