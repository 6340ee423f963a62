import { ApiError, notFound } from '../../../errors.ts';
import type { CardConfig, CardCustomer, UpdateCardCustomerRequest } from '../../../generated/schemas.ts';
import type { CardEnvironment, CardIssuer, CardProgram } from '../../../ports/cards.ts';
import type { CustomerSnapshot } from '../../../ports/fiat.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  type Services,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { inSavepoint } from '../../savepoint.ts';
import { pollCustomer, storedSnapshot, storeSnapshot } from '../fiat-customers/customer-snapshot.ts';
import type { StoredFiatCustomer, StoredSnapshot } from '../fiat-customers/fiat-customer.entity.ts';
import { askProvider, findProvider, getCustomer, getEmail } from '../fiat-customers/find-customer.ts';
import { type AskedCustomer, askForLinks, storeCustomer } from '../fiat-customers/verify-customer.ts';
import { CardCustomerEntity, type StoredCardCustomer } from './card.entity.ts';

/** The facts from which the status of a customer is derived. */
interface CustomerFacts {
  readonly accepted: Pick<StoredCardCustomer, 'disclosureAcceptedAtMs' | 'acceptedAgreements'>;
  readonly program: CardProgram;
  /** The last response of the provider that verifies customers. */
  readonly snapshot: StoredSnapshot;
  /** The endorsement that the issuer requires. */
  readonly endorsement: string;
  readonly links: { readonly terms?: string | undefined; readonly verification?: string | undefined };
}

/**
 * Derives the status of a user's application, with the data for the next step.
 *
 * CHOICE: the user's own consents come first, then the provider's terms, then the verification. A rejection or
 * suspension is shown even if other steps are missing.
 */
function customerStatus(facts: CustomerFacts): CardCustomer {
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

/**
 * Returns the status of a rejected or suspended customer, which the user cannot change; undefined for other customers.
 */
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

/**
 * Returns the user whose access token the request carries.
 *
 * @throws ApiError missing_or_invalid_token if the request has only the app secret.
 */
export function requireCardUser({ proof }: Pick<OperationContext, 'proof'>): string {
  if (proof.userId !== undefined) return proof.userId;
  throw new ApiError('missing_or_invalid_token', 'expected the access token of a user');
}

/**
 * Finds the issuer of an environment.
 *
 * @throws ApiError not_supported if it is not configured.
 */
export function findIssuer(
  { cardIssuers }: Pick<Services, 'cardIssuers'>,
  environment: CardEnvironment,
): CardIssuer {
  const found = cardIssuers.find(environment);
  if (found !== undefined) return found;
  throw new ApiError(
    'not_supported',
    `/environment: no card issuer is configured here for \`${environment}\``,
  );
}

/**
 * Runs a call to the issuer. Use it outside any transaction.
 *
 * @throws ApiError unavailable if the issuer cannot be reached; the caller may send the same request again.
 */
export function askIssuer<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  return askProvider('cards', call);
}

type AskContext = Pick<
  PlanContext,
  'app' | 'em' | 'fiatProviders' | 'cardIssuers' | 'proof' | 'log' | 'nowMs'
>;

/** The issuer's and the provider's reports about a user, read before the request's transaction. */
export interface LookedAtCustomer {
  readonly program: CardProgram;
  readonly endorsement: string;
  /** The customer at the provider; undefined before it is created. */
  readonly verified: Verified | undefined;
}

interface Verified {
  readonly known: StoredFiatCustomer;
  /** The provider's response; undefined while the provider cannot be reached. */
  readonly snapshot: CustomerSnapshot | undefined;
  readonly links: { readonly terms?: string | undefined; readonly verification?: string | undefined };
}

/** A customer at the provider, newly opened or existing. */
export interface OpenedCustomer {
  readonly program: CardProgram;
  readonly endorsement: string;
  readonly asked: AskedCustomer;
}

/**
 * Opens the user at the provider, as a customer who applies for cards. Safe to repeat.
 *
 * @throws ApiError missing_or_invalid_token, not_supported, unavailable; invalid_state for a user without an e-mail
 * address; invalid_data when the provider refuses the customer.
 */
export async function askToOpen(context: AskContext, environment: CardEnvironment): Promise<OpenedCustomer> {
  const userId = requireCardUser(context);
  const issuer = findIssuer(context, environment);
  const email = await getEmail(context, userId);
  if (email === undefined) {
    throw new ApiError(
      'invalid_state',
      'the user has no linked email account, which the card issuer requires',
    );
  }
  const asked = await askForLinks(
    context,
    { type: 'user', id: userId },
    {
      input: {
        ...{ provider: issuer.verifiedBy, environment, endorsements: [issuer.endorsement] },
        links: ['terms', 'verification'],
      },
      readContact: async () => ({ email }),
    },
  );
  return { program: await askIssuer(() => issuer.program()), endorsement: issuer.endorsement, asked };
}

/** Stores the opened customer. Safe to repeat: consents that are already stored stay. */
export async function createCardCustomer(
  context: OperationContext,
  environment: CardEnvironment,
  planned: Planned<OpenedCustomer>,
): Promise<CardCustomer> {
  const { asked, ...rest } = unwrapPlan(planned);
  // This locks the user against deletion.
  const { snapshot } = await storeCustomer(context, asked);
  const accepted = (await getAccepted(context, environment)) ?? (await insertCustomer(context, environment));
  return customerStatus({ ...rest, accepted, snapshot, links: asked.links });
}

async function insertCustomer(
  context: OperationContext,
  environment: CardEnvironment,
): Promise<StoredCardCustomer> {
  const { app, ids, nowMs } = context;
  const row = {
    ...{ id: ids.cuid2(), appId: app.id, userId: requireCardUser(context), environment },
    ...{ disclosureAcceptedAtMs: null, acceptedAgreements: '[]', agreementsAcceptedAtMs: null },
    createdAtMs: nowMs,
  };
  try {
    await inSavepoint(context, async (inner) => {
      await inner.insert(CardCustomerEntity, row);
    });
    return row;
  } catch (error) {
    const other = isUniqueViolation(error) ? await getAccepted(context, environment) : undefined;
    if (other === undefined) throw error;
    return other;
  }
}

/**
 * Reads the user's status and the links for the next step from the provider.
 *
 * @throws ApiError missing_or_invalid_token, not_supported, unavailable
 */
export async function lookAtCustomer(
  context: AskContext,
  environment: CardEnvironment,
): Promise<LookedAtCustomer> {
  const userId = requireCardUser(context);
  const issuer = findIssuer(context, environment);
  const program = await askIssuer(() => issuer.program());
  const isCustomer = (await getAccepted(context, environment)) !== undefined;
  const verified = isCustomer
    ? await lookAtVerification(context, { userId, issuer, environment })
    : undefined;
  return { program, endorsement: issuer.endorsement, verified };
}

async function lookAtVerification(
  context: AskContext,
  { userId, issuer, environment }: { userId: string; issuer: CardIssuer; environment: CardEnvironment },
): Promise<Verified | undefined> {
  const named = { provider: issuer.verifiedBy, environment };
  const known = await getCustomer(context, { type: 'user', id: userId }, named);
  if (known === undefined) return undefined;
  const snapshot = await pollCustomer(context, known);
  const { terms, verification, requirementsDue } = snapshot ? storedSnapshot(snapshot) : known.snapshot;
  const needsTerms = terms !== 'approved';
  const needsVerification = verification !== 'approved' || requirementsDue.length > 0;
  if (!needsTerms && !needsVerification) return { known, snapshot, links: {} };
  const provider = findProvider(context, named);
  const links = await askProvider(named.provider, async () => ({
    terms: needsTerms ? await provider.termsLink(known.customerId) : undefined,
    verification: needsVerification
      ? await provider.verificationLink(known.customerId, { endorsements: [issuer.endorsement] })
      : undefined,
  }));
  return { known, snapshot, links };
}

/** Returns the status of the user. Stores the provider's response in its own transaction. */
export async function getCardCustomer(
  context: OperationContext,
  environment: CardEnvironment,
  planned: Planned<LookedAtCustomer>,
): Promise<CardCustomer> {
  const { verified, ...rest } = unwrapPlan(planned);
  const accepted = await getAccepted(context, environment);
  if (accepted === undefined || verified === undefined) return { status: 'not_created' };
  const { known, snapshot, links } = verified;
  const stored =
    snapshot === undefined
      ? known
      : await context.inUnit((em, notes) => storeSnapshot({ ...context, em, notes }, known, snapshot));
  return customerStatus({ ...rest, accepted, snapshot: stored.snapshot, links });
}

/**
 * Records the consents of the user.
 *
 * CHOICE: the consent covers the bank's current agreements. A new agreement needs a new consent.
 *
 * @throws ApiError not_found before the customer is created; what `lookAtCustomer` throws.
 */
export async function acceptCardTerms(
  context: OperationContext,
  body: UpdateCardCustomerRequest,
  planned: Planned<LookedAtCustomer>,
): Promise<CardCustomer> {
  const { verified, ...rest } = unwrapPlan(planned);
  const { nowMs, em } = context;
  const accepted = await getAccepted(context, body.environment, lockForUpdate);
  if (accepted === undefined || verified === undefined) throw notFound('Card customer');
  if (body.accept_electronic_disclosure === true) accepted.disclosureAcceptedAtMs ??= nowMs;
  if (body.accept_bank_terms === true) {
    const before = JSON.parse(accepted.acceptedAgreements) as string[];
    const ids = new Set([...before, ...rest.program.bank.agreements.map(({ id }) => id)]);
    if (ids.size > before.length) {
      accepted.acceptedAgreements = JSON.stringify([...ids]);
      accepted.agreementsAcceptedAtMs = nowMs;
    }
  }
  await em.flush();
  const { known, snapshot, links } = verified;
  const stored = snapshot === undefined ? known : await storeSnapshot(context, known, snapshot);
  return customerStatus({ ...rest, accepted, snapshot: stored.snapshot, links });
}

/**
 * Returns the user as a verified customer who can get cards.
 *
 * @throws ApiError invalid_state unless the status is `ready`.
 */
export async function requireReady(
  context: AskContext,
  environment: CardEnvironment,
  { program, endorsement, verified }: LookedAtCustomer,
): Promise<{ readonly customerId: string }> {
  const accepted = await getAccepted(context, environment);
  const { status } =
    accepted === undefined || verified === undefined
      ? { status: 'not_created' }
      : customerStatus({ program, endorsement, accepted, ...latest(verified) });
  if (status === 'ready') return { customerId: verified!.known.customerId };
  throw new ApiError('invalid_state', `the card customer is not ready: its status is \`${status}\``);
}

function latest({ known, snapshot, links }: Verified) {
  return { snapshot: snapshot === undefined ? known.snapshot : storedSnapshot(snapshot), links };
}

/** Returns the terms that the user has accepted; undefined before the customer is created. */
export async function getAccepted(
  context: Pick<OperationContext, 'app' | 'em' | 'proof'>,
  environment: CardEnvironment,
  lock = {},
): Promise<StoredCardCustomer | undefined> {
  const where = { appId: context.app.id, userId: requireCardUser(context), environment };
  return (await context.em.findOne(CardCustomerEntity, where, lock)) ?? undefined;
}

/**
 * Reads the configuration that a web page needs to use the issuer. It is public, so the app secret suffices.
 *
 * @throws ApiError not_found for another app, not_supported, unavailable
 */
export async function readCardConfig(
  context: PlanContext,
  appId: string,
  environment: CardEnvironment,
): Promise<CardConfig> {
  if (lookupKey(appId) !== context.app.id) throw notFound('App');
  const issuer = findIssuer(context, environment);
  const { publishableKey, logoUrl, spenderAddress } = await askIssuer(() => issuer.program());
  return { publishable_key: publishableKey, card_logo_url: logoUrl, spender_address: spenderAddress };
}
