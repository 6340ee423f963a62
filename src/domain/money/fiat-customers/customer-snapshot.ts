import type { SqlEntityManager } from '@mikro-orm/sql';
import { isUnavailable } from '../../../errors.ts';
import type { CustomerSnapshot, FiatEnvironment, FiatHint, FiatPlace } from '../../../ports/fiat.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  type Services,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { lockUnlocked } from '../../../storage/locks.ts';
import { getOrganization } from '../../access/organizations/organization.ts';
import { getUser } from '../../access/user-records/find-user.ts';
import { noteChange, recordEvent } from '../../base/events/events.ts';
import { type Claimant, claimedUntil } from '../../base/processes/server-processes.ts';
import { FiatCustomerEntity, type StoredFiatCustomer, type StoredSnapshot } from './fiat-customer.entity.ts';
import { customersOf, eventData, type FiatEntity, findFiatEntity } from './find-customer.ts';

export function storedSnapshot(snapshot: CustomerSnapshot): StoredSnapshot {
  return {
    status: snapshot.status,
    terms: snapshot.terms.status,
    verification: snapshot.verification.status,
    rejectionReasons: snapshot.verification.rejectionReasons ?? null,
    capabilities: snapshot.capabilities,
    endorsements: snapshot.endorsements,
    requirementsDue: snapshot.requirementsDue,
    futureRequirementsDue: snapshot.futureRequirementsDue,
  };
}

/** The old and the new value of each changed field, by the path of the field in the event's `data`. */
type SnapshotChanges = Readonly<Record<string, readonly [unknown, unknown]>>;

/**
 * Returns the changes that events report; empty if only other fields have changed.
 *
 * @param check `kyc` or `kyb`.
 */
function changesBetween(
  before: StoredSnapshot,
  after: StoredSnapshot,
  check: 'kyc' | 'kyb',
): SnapshotChanges {
  const [old, now] = [fieldsOf(before, check), fieldsOf(after, check)];
  const paths = new Set([...old.keys(), ...now.keys()]);
  return Object.fromEntries(
    [...paths]
      .filter((path) => old.get(path) !== now.get(path))
      .map((path) => [path, [old.get(path) ?? null, now.get(path) ?? null] as const]),
  );
}

function fieldsOf(snapshot: StoredSnapshot, check: 'kyc' | 'kyb'): ReadonlyMap<string, string> {
  return new Map([
    ['status', snapshot.status],
    [`${check}.status`, snapshot.verification],
    ['tos.status', snapshot.terms],
    ...Object.entries(snapshot.capabilities).map(
      ([name, status]) => [`capabilities.${name}`, status] as const,
    ),
    ...snapshot.endorsements.map(({ name, status }) => [`endorsements.${name}`, status] as const),
  ]);
}

type StoreContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>;

// CHOICE: a customer is polled again after a tenth of the time since its last change, within these limits.
const SOONEST_MS = 2000;
const LATEST_MS = 3_600_000;
const PATIENCE = 10;

/** Returns when to poll a customer again whose snapshot last changed at `updatedAtMs`. */
export function nextCheckAt(nowMs: number, updatedAtMs: number): number {
  const wait = Math.floor((nowMs - updatedAtMs) / PATIENCE);
  return nowMs + Math.min(Math.max(wait, SOONEST_MS), LATEST_MS);
}

/** The columns of the last submission. */
export interface Submitted {
  readonly submittedAtMs: number;
  readonly submissionFingerprint: string;
}

/**
 * Stores a snapshot of a customer, and records the event of a change.
 *
 * INVARIANT: a snapshot is stored only if the row still has the version that it had before the provider was polled. So
 * a response that arrives after a newer one changes nothing, and each change has one event.
 *
 * @param known the row as it was before the provider was polled.
 * @param submitted the data that was submitted before the response, if any.
 * @returns the current row.
 */
export async function storeSnapshot(
  context: StoreContext,
  known: StoredFiatCustomer,
  snapshot: CustomerSnapshot,
  submitted?: Submitted,
): Promise<StoredFiatCustomer> {
  const { em, nowMs } = context;
  const stored = storedSnapshot(snapshot);
  const isChanged = JSON.stringify(stored) !== JSON.stringify(storedAgain(known));
  const updatedAtMs = isChanged ? nowMs : known.updatedAtMs;
  const next = {
    customerId: snapshot.id,
    snapshot: stored,
    version: known.version + 1,
    ...submitted,
    checkedAtMs: nowMs,
    nextCheckAtMs: nextCheckAt(nowMs, updatedAtMs),
    updatedAtMs,
  };
  const taken = await em.nativeUpdate(FiatCustomerEntity, { id: known.id, version: known.version }, next);
  if (taken === 0) {
    return em.findOneOrFail(FiatCustomerEntity, { id: known.id }, { disableIdentityMap: true });
  }
  // Events do not show every change, but the audit log has all of them.
  if (isChanged)
    noteChange(context.notes, { appId: known.appId, what: 'fiat_customer.updated', id: known.entityId });
  await tell(context, known, next.snapshot);
  return { ...known, ...next };
}

/** Orders the members of the stored snapshot as `storedSnapshot` does, so that the JSON texts can be compared. */
function storedAgain({ snapshot }: StoredFiatCustomer): StoredFiatCustomer['snapshot'] {
  const { status, terms, verification, rejectionReasons, capabilities, endorsements } = snapshot;
  const { requirementsDue, futureRequirementsDue } = snapshot;
  return {
    ...{ status, terms, verification, rejectionReasons, capabilities, endorsements },
    ...{ requirementsDue, futureRequirementsDue },
  };
}

async function tell(
  context: StoreContext,
  known: StoredFiatCustomer,
  now: StoredFiatCustomer['snapshot'],
): Promise<void> {
  const isUser = known.entityType === 'user';
  const check = isUser ? 'kyc' : 'kyb';
  const changes = changesBetween(known.snapshot, now, check);
  if (Object.keys(changes).length === 0) return;
  const { appId, provider, environment, entityId } = known;
  const payload = { provider, environment, changes, data: eventData(now, check) };
  await (isUser
    ? recordEvent(context, { appId, type: 'user.kyc.updated', payload: { user_id: entityId, ...payload } })
    : recordEvent(context, {
        ...{ appId, type: 'organization.kyb.updated' },
        payload: { organization_id: entityId, ...payload },
      }));
}

/** For how long lists treat a response of the provider as current. */
const CURRENT_MS = 5000;
/** How long a claim of a customer lasts. */
const LEASE_MS = 60_000;

/**
 * A customer with the provider's response. The snapshot is undefined if the stored one is current, or if the provider
 * could not be reached.
 */
export interface PolledCustomer {
  readonly known: StoredFiatCustomer;
  readonly snapshot: CustomerSnapshot | undefined;
}

/**
 * Reads the verifications of a user or an organization, newest first. Polls the provider about verifications that were
 * last polled more than five seconds ago, so that a revocation shows within seconds. If the provider is unreachable,
 * the stored status is used.
 *
 * @throws ApiError not_found
 */
export async function pollCustomers(context: PlanContext, entity: FiatEntity): Promise<PolledCustomer[]> {
  const customers = await customersOf(context, await findFiatEntity(context, entity));
  return Promise.all(
    customers.map(async (known) => {
      const isCurrent = known.checkedAtMs + CURRENT_MS > context.nowMs && known.checkedAtMs <= context.nowMs;
      return { known, snapshot: isCurrent ? undefined : await pollCustomer(context, known) };
    }),
  );
}

/** Stores the polled responses, each in its own transaction. Returns the current rows. */
export function storeAll(
  context: Pick<OperationContext, 'ids' | 'nowMs' | 'inUnit'>,
  planned: Planned<PolledCustomer[]>,
): Promise<StoredFiatCustomer[]> {
  return Promise.all(
    unwrapPlan(planned).map(({ known, snapshot }) =>
      snapshot === undefined
        ? known
        : context.inUnit((em, notes) => storeSnapshot({ ...context, em, notes }, known, snapshot)),
    ),
  );
}

/**
 * Polls the provider about a customer. Undefined if the provider is not configured or unavailable, or if it has no such
 * customer.
 */
export async function pollCustomer(
  { fiatProviders, log }: Pick<Services, 'fiatProviders' | 'log'>,
  { provider, environment, customerId }: StoredFiatCustomer,
): Promise<CustomerSnapshot | undefined> {
  try {
    return await fiatProviders.find(provider, environment as FiatEnvironment)?.customer(customerId);
  } catch (err) {
    if (!isUnavailable(err)) throw err;
    log.warn({ err, provider, environment }, 'provider unavailable; will retry');
    return undefined;
  }
}

/**
 * Makes the customers that the notifications of a provider name due, so that they are polled next. Notifications about
 * deposits and payouts have no effect, because both are polled continuously.
 */
export async function expediteChecks(
  em: SqlEntityManager,
  { provider, environment }: { readonly provider: string; readonly environment: FiatEnvironment },
  { hints, nowMs }: { readonly hints: readonly FiatHint[]; readonly nowMs: number },
): Promise<void> {
  const ids = hints.filter(({ kind }) => kind === 'customer').map(({ id }) => id);
  if (ids.length === 0) return;
  await em.nativeUpdate(
    FiatCustomerEntity,
    { provider, environment, customerId: { $in: ids }, nextCheckAtMs: { $gt: nowMs } },
    { nextCheckAtMs: nowMs },
  );
}

/**
 * Claims due customers, most overdue first. The claim of a dead process is released or expires.
 *
 * @param busy the busy providers, whose customers are not claimed.
 */
export async function claimDueCustomers(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { busy, limit }: { readonly busy: readonly FiatPlace[]; readonly limit: number },
): Promise<readonly StoredFiatCustomer[]> {
  const due = await em.find(
    FiatCustomerEntity,
    { nextCheckAtMs: { $lte: nowMs }, $and: busy.map((place) => ({ $not: place })) },
    { orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit, disableIdentityMap: true, ...lockUnlocked },
  );
  for (const { id } of due) {
    await em.nativeUpdate(FiatCustomerEntity, { id }, { nextCheckAtMs: nowMs + LEASE_MS, claimedBy: owner });
  }
  return due;
}

/** Makes the customers that a dead process had claimed due again. */
export async function releaseCustomersOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    FiatCustomerEntity,
    { claimedBy: dead.owner, nextCheckAtMs: claimedUntil(dead) },
    { nextCheckAtMs: dead.nowMs },
  );
}

/**
 * Stores the provider's response about a claimed customer. Deletes the customer if its user or organization no longer
 * exists.
 */
export async function storeClaimed(
  services: Pick<Services, 'ids'>,
  { em, notes, nowMs }: Pick<OperationContext, 'em' | 'notes' | 'nowMs'>,
  { known, snapshot }: PolledCustomer,
): Promise<void> {
  if (!(await exists({ em, app: { id: known.appId } }, known))) {
    await em.nativeDelete(FiatCustomerEntity, { id: known.id });
  } else if (snapshot !== undefined) {
    await storeSnapshot({ ...services, em, notes, nowMs }, known, snapshot);
  }
}

async function exists(
  context: Pick<PlanContext, 'app' | 'em'>,
  { entityType, entityId }: StoredFiatCustomer,
): Promise<boolean> {
  const found = entityType === 'user' ? getUser : getOrganization;
  return (await found(context, entityId)) !== undefined;
}
