import assert from 'node:assert/strict';
import { ApiError, invalidField, isUnavailable } from '../../../errors.ts';
import type { KYBStatusResponse, KYCStatusResponse, KyxTosResponse } from '../../../generated/schemas.ts';
import type { FiatEnvironment, FiatProvider } from '../../../ports/fiat.ts';
import type { PlanContext, Services } from '../../../ports/operation-context.ts';
import { findOrganization, findOrganizationForUpdate } from '../../access/organizations/organization.ts';
import { findUser, lockUser } from '../../access/user-records/find-user.ts';
import { FiatCustomerEntity, type StoredFiatCustomer, type StoredSnapshot } from './fiat-customer.entity.ts';

/** A user or an organization. A provider verifies a user as a person and an organization as a business. */
export interface FiatEntity {
  readonly type: 'user' | 'organization';
  /** The id as in a path. The prefix `did:service:` of a user's id is optional. */
  readonly id: string;
}

/**
 * Finds a user or an organization of the app, and returns it with its full id.
 *
 * @throws ApiError not_found
 */
export async function findFiatEntity(
  context: Pick<PlanContext, 'app' | 'em'>,
  { type, id }: FiatEntity,
): Promise<FiatEntity> {
  return type === 'user'
    ? { type, id: (await findUser(context, id)).row.id }
    : { type, id: (await findOrganization(context, id)).id };
}

/**
 * Locks a user or an organization against deletion until the transaction ends.
 *
 * @param id the full id, with the prefix of a user's id.
 * @throws ApiError not_found
 */
export async function lockFiatEntity(
  context: Pick<PlanContext, 'app' | 'em'>,
  { type, id }: FiatEntity,
): Promise<void> {
  await (type === 'user' ? lockUser(context, id) : findOrganizationForUpdate(context, id));
}

/** CHOICE: the environment of the provider if a request names none. It is the same in all fiat operations. */
const DEFAULT_ENVIRONMENT: FiatEnvironment = 'production';

/** A provider and its environment, as a request names them. */
export interface NamedProvider {
  readonly provider: string;
  readonly environment?: FiatEnvironment | undefined;
}

/** Returns the environment of a request, or the default. */
export function environmentOf({ environment }: Pick<NamedProvider, 'environment'>): FiatEnvironment {
  return environment ?? DEFAULT_ENVIRONMENT;
}

/**
 * Finds the provider that a request names.
 *
 * @throws ApiError not_supported if this environment of the provider is not configured.
 */
export function findProvider(
  { fiatProviders }: Pick<Services, 'fiatProviders'>,
  named: NamedProvider,
): FiatProvider {
  const environment = environmentOf(named);
  const found = fiatProviders.find(named.provider, environment);
  if (found !== undefined) return found;
  throw new ApiError(
    'not_supported',
    `/provider: the provider \`${named.provider}\` is not configured here for \`${environment}\``,
  );
}

const RETRY_AFTER_SECONDS = 2;

/**
 * Runs a call to the provider. Use it outside any transaction.
 *
 * @throws ApiError unavailable if the provider cannot be reached; the caller may send the same request again.
 */
export async function askProvider<Answer>(provider: string, call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause;
    throw new ApiError('unavailable', `the provider \`${provider}\` is unavailable; try again`, {
      cause,
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }
}

type ReadContext = Pick<PlanContext, 'app' | 'em'>;

/** Returns a user or an organization as the customer of a provider; undefined before verification was started. */
export async function getCustomer(
  { app, em }: ReadContext,
  { type, id }: FiatEntity,
  named: NamedProvider,
): Promise<StoredFiatCustomer | undefined> {
  const where = { appId: app.id, entityType: type, entityId: id, provider: named.provider };
  const found = await em.findOne(FiatCustomerEntity, { ...where, environment: environmentOf(named) });
  return found ?? undefined;
}

/** Returns the customer rows of a user or an organization: at most one for each provider and environment. */
export function customersOf(
  { app, em }: ReadContext,
  { type, id }: FiatEntity,
): Promise<StoredFiatCustomer[]> {
  return em.find(
    FiatCustomerEntity,
    { appId: app.id, entityType: type, entityId: id },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_CUSTOMERS, disableIdentityMap: true },
  );
}

// A bound for the query. Today there is one provider with two environments.
const MAX_CUSTOMERS = 20;

/** Returns the customer with this id at a provider, of any app; undefined if there is none. */
export async function getCustomerById(
  em: PlanContext['em'],
  { provider, environment }: { readonly provider: string; readonly environment: FiatEnvironment },
  customerId: string,
): Promise<StoredFiatCustomer | undefined> {
  return (await em.findOne(FiatCustomerEntity, { provider, environment, customerId })) ?? undefined;
}

/**
 * Returns the id that the provider has for a verified customer.
 *
 * @param entity with its full id.
 * @throws ApiError invalid_state unless the customer is active and has the capability.
 */
export async function requireCustomer(
  context: Pick<PlanContext, 'app' | 'em'>,
  {
    entity,
    named,
    capability,
  }: {
    readonly entity: FiatEntity;
    readonly named: NamedProvider;
    readonly capability: 'payin_fiat' | 'payout_fiat';
  },
): Promise<{ readonly customerId: string }> {
  const customer = await getCustomer(context, entity, named);
  const status = customer?.snapshot.status ?? 'not_started';
  const can = customer?.snapshot.capabilities[capability] ?? 'pending';
  if (customer !== undefined && status === 'active' && can === 'active') {
    return { customerId: customer.customerId };
  }
  throw new ApiError(
    'invalid_state',
    `the ${entity.type} is not verified by \`${named.provider}\` in \`${environmentOf(named)}\`: its status is \`${status}\`, \`${capability}\` is \`${can}\``,
    {
      data: {
        customer: {
          ...{ type: entity.type, id: entity.id, provider: named.provider },
          ...{ environment: environmentOf(named), status, capability, capability_status: can },
          terms: customer?.snapshot.terms ?? 'not_started',
          requirements_due: [...(customer?.snapshot.requirementsDue ?? [])],
        },
      },
    },
  );
}

/** The links to pages on which a customer continues. Only requests that create links get them. */
export interface CustomerLinks {
  readonly terms?: string | undefined;
  readonly verification?: string | undefined;
}

type Customer = Pick<StoredFiatCustomer, 'provider' | 'environment' | 'snapshot'>;

/** Converts the verification status of a user to wire form. */
export function kycView(customer: Customer, links: CustomerLinks = {}): KYCStatusResponse {
  return { ...statusView(customer, links), kyc: checkView(customer.snapshot, links) };
}

/** Converts the verification status of an organization to wire form. */
export function kybView(customer: Customer, links: CustomerLinks = {}): KYBStatusResponse {
  return { ...statusView(customer, links), kyb: checkView(customer.snapshot, links) };
}

/** Converts the customer's acceptance of the provider's terms to wire form. */
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

/** Returns the `data` of `user.kyc.updated` and `organization.kyb.updated`. */
export function eventData(snapshot: StoredSnapshot, check: 'kyc' | 'kyb') {
  return {
    status: snapshot.status,
    [check]: { status: snapshot.verification },
    tos: { status: snapshot.terms },
    capabilities: snapshot.capabilities,
    endorsements: endorsementsView(snapshot),
  };
}

/**
 * Returns the e-mail address of a user: the given one, or one from a linked account.
 *
 * @throws ApiError invalid_data when there is none.
 */
export async function requireEmail(
  context: Pick<PlanContext, 'app' | 'em'>,
  userId: string,
  given: string | undefined,
): Promise<string> {
  const email = given ?? (await getEmail(context, userId));
  if (email !== undefined) return email;
  throw invalidField('/email', 'expected an email address: the user has no linked one');
}

/**
 * Returns the address of the user's linked e-mail account, if any.
 *
 * @throws ApiError not_found
 */
export async function getEmail(
  context: Pick<PlanContext, 'app' | 'em'>,
  userId: string,
): Promise<string | undefined> {
  const { linkedAccounts } = await findUser(context, userId);
  return linkedAccounts.find(({ type }) => type === 'email')?.subject;
}

/**
 * Requires a redirect URL that only the customer's browser can open.
 *
 * CHOICE: `https`, or `http` to the browser's own machine (RFC 8252 §7.3) for apps under development.
 *
 * @throws ApiError invalid_data
 */
export function requireRedirect(text: string | undefined): void {
  if (text === undefined) return;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = url?.protocol === 'http:' && LOOPBACK.test(url.hostname);
  if (url?.protocol !== 'https:' && !isLoopback) {
    throw invalidField('/redirect_uri', 'expected an `https` URL');
  }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
