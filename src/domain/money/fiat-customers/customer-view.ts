import assert from 'node:assert/strict';
import type { KYBStatusResponse, KYCStatusResponse, KyxTosResponse } from '../../../generated/schemas.ts';
import type { FiatEnvironment } from '../../../ports/fiat-providers.ts';
import type { StoredFiatCustomer, StoredSnapshot } from './fiat-customer.entity.ts';

/** Where a customer continues. Only the responses that make links contain them. */
export interface CustomerLinks {
  readonly terms?: string | undefined;
  readonly verification?: string | undefined;
}

type Customer = Pick<StoredFiatCustomer, 'provider' | 'environment' | 'snapshot'>;

/** The verification status of a user on the wire. */
export function kycView(customer: Customer, links: CustomerLinks = {}): KYCStatusResponse {
  return { ...statusView(customer, links), kyc: checkView(customer.snapshot, links) };
}

/** The verification status of an organization on the wire. */
export function kybView(customer: Customer, links: CustomerLinks = {}): KYBStatusResponse {
  return { ...statusView(customer, links), kyb: checkView(customer.snapshot, links) };
}

/** The provider's terms on the wire. */
export function tosView(
  { provider, environment, snapshot }: Customer,
  { terms }: CustomerLinks,
): KyxTosResponse {
  assert(terms !== undefined, 'expected a link to the terms of a customer that was just opened');
  return {
    provider: provider as 'bridge',
    environment: environment as FiatEnvironment,
    status: snapshot.terms,
    link: terms,
  };
}

function statusView({ provider, environment, snapshot }: Customer, { terms }: CustomerLinks) {
  return {
    provider: provider as 'bridge',
    environment: environment as FiatEnvironment,
    status: snapshot.status,
    tos: { status: snapshot.terms, ...(terms === undefined ? {} : { link: terms }) },
    capabilities: snapshot.capabilities,
    endorsements: endorsementsView(snapshot),
    requirements_due: [...snapshot.requirementsDue],
    future_requirements_due: [...snapshot.futureRequirementsDue],
  };
}

function checkView({ verification, rejectionReasons }: StoredSnapshot, links: CustomerLinks) {
  return {
    status: verification,
    ...(links.verification === undefined ? {} : { link: links.verification }),
    ...(rejectionReasons === null ? {} : { rejection_reasons: [...rejectionReasons] }),
  };
}

function endorsementsView({ endorsements }: StoredSnapshot) {
  return endorsements.map(({ name, status, missing }) => ({
    name,
    status,
    missing: missing === null ? null : [...missing],
  }));
}

/** The `data` of `user.kyc.updated` and `organization.kyb.updated`. */
export function eventData(snapshot: StoredSnapshot, check: 'kyc' | 'kyb') {
  return {
    status: snapshot.status,
    [check]: { status: snapshot.verification },
    tos: { status: snapshot.terms },
    capabilities: snapshot.capabilities,
    endorsements: endorsementsView(snapshot),
  };
}
