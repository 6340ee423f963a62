import { findApp } from '../../domain/access/apps/find-app.ts';
import { pollCustomer, storeSnapshot } from '../../domain/money/fiat-customers/customer-snapshot.ts';
import type { StoredFiatCustomer } from '../../domain/money/fiat-customers/fiat-customer.entity.ts';
import { type FiatEntity, getCustomerById } from '../../domain/money/fiat-customers/find-customer.ts';
import { askForLinks, storeCustomer } from '../../domain/money/fiat-customers/verify-customer.ts';
import { ApiError, invalidField } from '../../errors.ts';
import type { ControlContext, ControlInput, Handler, HostedVerification } from '../control-plane.ts';
import type { SandboxVerificationPage } from '../generated/schemas.ts';

type Body = ControlInput<'decideVerification'>['body'];

// Every customer that a tester verifies has this contact, because the simulated identity office stores no contacts.
const EMAIL = 'customer@example.com';

function entityOf({ user_id: userId, organization_id: organizationId }: Body): FiatEntity {
  if ((userId === undefined) === (organizationId === undefined)) {
    throw invalidField('/user_id', 'expected either `user_id` or `organization_id`');
  }
  return userId === undefined ? { type: 'organization', id: organizationId! } : { type: 'user', id: userId };
}

export const decideVerification: Handler<'decideVerification'> = async ({ body }, context) => {
  const { clock, fiat, fiatProviders, appId, runDueJobs } = context;
  const entity = entityOf(body);
  const nowMs = clock.now();
  const app = await context.read((em) => findApp(em, body.app_id ?? appId));
  const input = { provider: 'bridge', environment: body.environment, links: [] };
  const readContact = async () => ({ email: EMAIL });
  const asked = await context.read((em) =>
    askForLinks({ app, em, fiatProviders }, entity, { input, readContact }),
  );
  const known = await context.change((em, notes) =>
    storeCustomer({ ...context, app, em, notes, nowMs }, asked),
  );
  await fiat.decide(known.environment, known.customerId, {
    ...{ outcome: body.outcome, reasons: body.reasons },
    ...{ requirementsDue: body.requirements_due, endorsements: body.endorsements },
  });
  const stored = await refreshCustomer(context, known);
  await runDueJobs();
  return {
    entity_id: stored.entityId,
    provider: stored.provider,
    environment: stored.environment,
    customer_id: stored.customerId,
    status: stored.snapshot.status,
  };
};

export const getVerificationPage: Handler<'getVerificationPage'> = async ({ path }, context) =>
  verificationPageView(await findVerificationPage(context, path.token));

export const useVerificationPage: Handler<'useVerificationPage'> = async ({ path, body }, context) => {
  const { environment, snapshot } = await findVerificationPage(context, path.token);
  if (!(await context.fiat.usePage(path.token, body.action))) {
    const state = body.action === 'accept_terms' ? snapshot.terms.status : snapshot.verification.status;
    throw new ApiError(
      'invalid_state',
      `the page does not offer \`${body.action}\`: the status is \`${state}\``,
    );
  }
  const place = { provider: 'bridge', environment };
  const known = await context.read((em) => getCustomerById(em, place, snapshot.id));
  // The user or organization may have been deleted after the customer left for the page.
  if (known !== undefined) await refreshCustomer(context, known);
  await context.runDueJobs();
  return verificationPageView(await findVerificationPage(context, path.token));
};

export const setProviderState: Handler<'setProviderState'> = async ({ path, body: { state } }, context) => {
  const provider = path.provider === 'cards' ? context.cards : context.fiat;
  provider.setUp(state === 'up');
  await context.runDueJobs();
  return { state };
};

/**
 * Reads a customer from the provider and stores the result, with the event if something has changed. Returns the
 * current row.
 */
async function refreshCustomer(
  { fiatProviders, log, ids, clock, change }: ControlContext,
  known: StoredFiatCustomer,
): Promise<StoredFiatCustomer> {
  const snapshot = await pollCustomer({ fiatProviders, log }, known);
  if (snapshot === undefined) return known;
  return change((em, notes) => storeSnapshot({ em, notes, ids, nowMs: clock.now() }, known, snapshot));
}

/**
 * Finds the verification to which a link belongs.
 *
 * @throws ApiError not_found
 */
async function findVerificationPage(
  { fiat }: Pick<ControlContext, 'fiat'>,
  token: string,
): Promise<HostedVerification> {
  const page = await fiat.page(token);
  if (page === undefined) throw new ApiError('not_found', 'the link is not known');
  return page;
}

/** Returns what the hosted page shows. */
function verificationPageView({
  kind,
  environment,
  snapshot,
  redirectUri,
}: HostedVerification): SandboxVerificationPage {
  const { terms, verification } = snapshot;
  const offers = [
    ...(terms.link === undefined ? [] : ['accept_terms' as const]),
    ...(verification.link === undefined ? [] : ['complete' as const, 'decline' as const]),
  ];
  return {
    kind,
    environment,
    status: snapshot.status,
    terms: terms.status,
    verification: verification.status,
    actions: offers,
    requirements_due: [...snapshot.requirementsDue],
    rejection_reasons: [...(verification.rejectionReasons ?? [])],
    redirect_uri: redirectUri,
  };
}
