import { hash } from 'node:crypto';
import { canonicalJson } from '../../../engine/crypto/encoding.ts';
import { ApiError } from '../../../errors.ts';
import type {
  InitiateOrganizationKybLinksRequest,
  InitiateOrganizationKybTosRequest,
  InitiateUserKycLinksRequest,
  InitiateUserKycTosRequest,
  SubmitOrganizationKybRequest,
  SubmitUserKycRequest,
} from '../../../generated/schemas.ts';
import type { CustomerSnapshot, FiatProvider, FiatRefusal, Submission } from '../../../ports/fiat.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { findOrganization } from '../../access/organizations/organization.ts';
import { findFingerprint, fingerprint } from '../../base/fingerprints/fingerprint.ts';
import { inSavepoint } from '../../savepoint.ts';
import { checkBusiness, checkPerson } from './check-submission.ts';
import { nextCheckAt, type Submitted, storedSnapshot, storeSnapshot } from './customer-snapshot.ts';
import { FiatCustomerEntity, type StoredFiatCustomer } from './fiat-customer.entity.ts';
import {
  askProvider,
  type CustomerLinks,
  environmentOf,
  type FiatEntity,
  findFiatEntity,
  findProvider,
  getCustomer,
  getEmail,
  lockFiatEntity,
  type NamedProvider,
  requireEmail,
  requireRedirect,
} from './find-customer.ts';

type AskContext = Pick<PlanContext, 'app' | 'em' | 'fiatProviders'>;
type StoreContext = Pick<OperationContext, 'app' | 'em' | 'ids' | 'notes' | 'nowMs' | 'entropy' | 'keyStore'>;

/** A customer and the provider's response, read before the transaction of the request. */
export interface AskedCustomer {
  readonly entity: FiatEntity;
  readonly named: NamedProvider;
  /** The stored row; undefined for a new customer. */
  readonly known: StoredFiatCustomer | undefined;
  readonly snapshot: CustomerSnapshot;
  readonly links: CustomerLinks;
  /** The digest of the submitted data; undefined if nothing was submitted. */
  readonly submission: object | undefined;
}

/** The provider, and the links that the request wants, with the options for these links. */
interface VerificationInput extends NamedProvider {
  readonly endorsements?: readonly string[] | undefined;
  readonly client_agreement_id?: string | undefined;
  readonly redirect_uri?: string | undefined;
  readonly links: readonly ('terms' | 'verification')[];
}

/** Reads the contact data with which a customer is opened. */
type ReadContact = (entity: FiatEntity) => Promise<{ readonly email: string; readonly name?: string }>;

/**
 * Opens the customer at the provider if it does not exist, and creates links to hosted pages.
 *
 * @throws ApiError not_found, not_supported, unavailable; invalid_data when the provider refuses the customer.
 */
export async function askForLinks(
  context: AskContext,
  { type, id }: FiatEntity,
  { input, readContact }: { readonly input: VerificationInput; readonly readContact: ReadContact },
): Promise<AskedCustomer> {
  const entity = await findFiatEntity(context, { type, id });
  const provider = findProvider(context, input);
  const known = await getCustomer(context, entity, input);
  const contact = await readContact(entity);
  const opened = await askProvider(input.provider, () =>
    provider.openCustomer({
      ...{ id: known?.customerId, kind: kindOf(entity), reference: referenceOf(context, entity) },
      ...{ endorsements: input.endorsements, clientAgreementId: input.client_agreement_id },
      ...{ email: contact.email, name: contact.name, redirectUri: input.redirect_uri },
    }),
  );
  const snapshot = requireAccepted(opened);
  const links = await askProvider(input.provider, () => linksOf(provider, snapshot, input));
  return { entity, named: input, known, snapshot, links, submission: undefined };
}

/** The statuses in which the provider is reviewing the last submission or has approved it. */
const takenStatuses = new Set(['under_review', 'active']);

/**
 * Submits data to the provider.
 *
 * CHOICE: a repetition of the last submission is not sent while the provider is reviewing that submission or has
 * approved it. Clients repeat a submission when they lose the response, and then get the current status.
 *
 * @throws ApiError unavailable; invalid_data when the provider refuses the data.
 */
async function askToVerify(
  context: AskContext & Pick<PlanContext, 'keyStore'>,
  found: Pick<AskedCustomer, 'entity' | 'known' | 'named'>,
  submission: Pick<VerificationInput, 'endorsements' | 'client_agreement_id'> &
    Pick<Submission, 'kind' | 'data'> & {
      /** The data as the client sent it, without additions. */
      readonly given: object;
    },
): Promise<AskedCustomer> {
  const { entity, known, named } = found;
  const provider = findProvider(context, named);
  const terms = {
    ...{ id: known?.customerId, reference: referenceOf(context, entity) },
    ...{ endorsements: submission.endorsements, clientAgreementId: submission.client_agreement_id },
  };
  const { kind, data } = submission;
  // Hash the data only once, because documents can be large.
  const place = { provider: named.provider, environment: environmentOf(named) };
  const submitted = { ...terms, id: undefined, ...place, kind, data: submission.given };
  const digest = { submission: hash('sha256', canonicalJson(submitted)) };
  const current = await getTaken(context, found, digest);
  if (current !== undefined) return { ...found, snapshot: current, links: {}, submission: undefined };
  const answer = await askProvider(named.provider, () =>
    provider.submit({ ...terms, kind, data } as Submission),
  );
  const snapshot = requireAccepted(answer, '/data');
  return { ...found, snapshot, links: {}, submission: digest };
}

/** Reads the current state of the customer if the provider already has this submission. Undefined otherwise. */
async function getTaken(
  context: AskContext & Pick<PlanContext, 'keyStore'>,
  { known, named }: Pick<AskedCustomer, 'known' | 'named'>,
  submission: object,
): Promise<CustomerSnapshot | undefined> {
  if (known === undefined || known.submissionFingerprint === null) return undefined;
  if (known.submissionFingerprint !== (await findFingerprint(context, submission))) return undefined;
  const provider = findProvider(context, named);
  const current = await askProvider(named.provider, () => provider.customer(known.customerId));
  return current !== undefined && takenStatuses.has(current.status) ? current : undefined;
}

/** Stores the customer in the transaction of the request. Returns the customer, and the links that were created. */
export async function storePrepared(
  context: StoreContext,
  planned: Planned<AskedCustomer>,
): Promise<{ readonly customer: StoredFiatCustomer; readonly links: CustomerLinks }> {
  const asked = unwrapPlan(planned);
  return { customer: await storeCustomer(context, asked), links: asked.links };
}

/**
 * Stores the customer in the transaction of the request.
 *
 * @throws ApiError not_found when the user or organization was deleted in the meantime.
 */
export async function storeCustomer(
  context: StoreContext,
  asked: AskedCustomer,
): Promise<StoredFiatCustomer> {
  await lockFiatEntity(context, asked.entity);
  const { known, snapshot, submission } = asked;
  const submitted: Submitted | undefined = submission && {
    submittedAtMs: context.nowMs,
    submissionFingerprint: await fingerprint(context, submission),
  };
  if (known === undefined) return insertCustomer(context, asked, submitted);
  return storeSnapshot(context, known, snapshot, submitted);
}

/** Inserts the customer. If a concurrent request was first, returns its row, which is polled soon. */
async function insertCustomer(
  context: StoreContext,
  { entity, named, snapshot }: AskedCustomer,
  submitted: Submitted | undefined,
): Promise<StoredFiatCustomer> {
  const { app, ids, nowMs, em } = context;
  const row = {
    ...{ id: ids.cuid2(), appId: app.id, entityType: entity.type, entityId: entity.id },
    ...{ provider: named.provider, environment: environmentOf(named), customerId: snapshot.id },
    ...{ snapshot: storedSnapshot(snapshot), version: 0, checkedAtMs: nowMs },
    ...(submitted ?? { submittedAtMs: null, submissionFingerprint: null }),
    ...{ nextCheckAtMs: nextCheckAt(nowMs, nowMs), createdAtMs: nowMs, updatedAtMs: nowMs },
  };
  try {
    await inSavepoint(context, async (inner) => {
      await inner.insert(FiatCustomerEntity, row);
    });
    return row as StoredFiatCustomer;
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const other = await getCustomer(context, entity, named);
    if (other === undefined) throw error;
    if (submitted !== undefined) await em.nativeUpdate(FiatCustomerEntity, { id: other.id }, submitted);
    return other;
  }
}

function kindOf({ type }: FiatEntity) {
  return type === 'user' ? 'person' : 'business';
}

/** Returns the reference that identifies a customer at the provider. It contains no personal data. */
function referenceOf({ app }: AskContext, { type, id }: FiatEntity): string {
  return `${app.id}/${type}/${id}`;
}

async function linksOf(
  provider: FiatProvider,
  { id }: CustomerSnapshot,
  { links, redirect_uri: redirectUri, endorsements }: VerificationInput,
): Promise<CustomerLinks> {
  const [terms, verification] = await Promise.all([
    links.includes('terms') ? provider.termsLink(id, redirectUri) : undefined,
    links.includes('verification') ? provider.verificationLink(id, { redirectUri, endorsements }) : undefined,
  ]);
  return { terms, verification };
}

function requireAccepted(answer: CustomerSnapshot | FiatRefusal, at = ''): CustomerSnapshot {
  if (!('fault' in answer)) return answer;
  const pointer = `${at}${answer.pointer ?? ''}`;
  const message = 'the provider refuses this';
  throw new ApiError('invalid_data', pointer === '' ? message : `${pointer}: ${message}`, {
    data: { issues: [{ in: 'body', pointer, message }] },
    reason: answer.message,
  });
}

/**
 * Starts the verification of an organization, and creates the links to the hosted pages.
 *
 * @throws ApiError what `requireRedirect` and `askForLinks` throw.
 */
export function askForOrganizationLinks(
  context: PlanContext,
  organizationId: string,
  input: InitiateOrganizationKybLinksRequest & InitiateOrganizationKybTosRequest,
  links: readonly ('terms' | 'verification')[],
): Promise<AskedCustomer> {
  requireRedirect(input.redirect_uri);
  return askForLinks(
    context,
    { type: 'organization', id: organizationId },
    {
      input: { ...input, links },
      readContact: async ({ id }) => ({
        email: input.email,
        name: input.business_name ?? (await findOrganization(context, id)).displayName,
      }),
    },
  );
}

/**
 * Submits data about an organization.
 *
 * @throws ApiError not_found, not_supported, unavailable; invalid_data for data that this server or the provider
 * refuses.
 */
export async function submitOrganization(
  context: PlanContext,
  organizationId: string,
  body: SubmitOrganizationKybRequest,
): Promise<AskedCustomer> {
  const entity = await findFiatEntity(context, { type: 'organization', id: organizationId });
  findProvider(context, body);
  const known = await getCustomer(context, entity, body);
  const isFirst = (known?.submittedAtMs ?? null) === null;
  checkBusiness(body.data, { isFirst, nowMs: context.nowMs });
  return askToVerify(
    context,
    { entity, known, named: body },
    { ...body, kind: 'business', given: body.data },
  );
}

/** Starts the verification of a user, and creates the links to the hosted pages. */
export function askForUserLinks(
  context: PlanContext,
  userId: string,
  input: InitiateUserKycLinksRequest & InitiateUserKycTosRequest,
  links: readonly ('terms' | 'verification')[],
): Promise<AskedCustomer> {
  requireRedirect(input.redirect_uri);
  return askForLinks(
    context,
    { type: 'user', id: userId },
    {
      input: { ...input, links },
      readContact: async ({ id }) => ({ email: await requireEmail(context, id, input.email) }),
    },
  );
}

/**
 * Submits data about a user.
 *
 * @throws ApiError not_found, not_supported, unavailable; invalid_data for data that this server or the provider
 * refuses.
 */
export async function submitUser(
  context: PlanContext,
  userId: string,
  body: SubmitUserKycRequest,
): Promise<AskedCustomer> {
  const entity = await findFiatEntity(context, { type: 'user', id: userId });
  findProvider(context, body);
  const known = await getCustomer(context, entity, body);
  const isFirst = (known?.submittedAtMs ?? null) === null;
  checkPerson(body.data, { isFirst, nowMs: context.nowMs });
  const email = body.data.email ?? (isFirst ? await getEmail(context, entity.id) : undefined);
  const data = email === undefined ? body.data : { ...body.data, email };
  return askToVerify(
    context,
    { entity, known, named: body },
    { ...body, kind: 'person', data, given: body.data },
  );
}
