import type { OperationContext } from '../../../operation-context.ts';
import type { CustomerSnapshot } from '../../../ports/fiat-providers.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { noteChange } from '../../base/events/stored-effects.ts';
import { eventData } from './customer-view.ts';
import { FiatCustomerEntity, type StoredFiatCustomer } from './fiat-customer.entity.ts';
import { changesBetween, storedSnapshot } from './snapshot.ts';

type StoreContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs'>;

// CHOICE: a customer is looked at again after a tenth of the time since its last change, within these limits.
const SOONEST_MS = 2000;
const LATEST_MS = 3_600_000;
const PATIENCE = 10;

/** When to ask about a customer again that changed last at `updatedAtMs`. */
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
 * Stores what the provider said about a customer, with the event of a change.
 *
 * INVARIANT: a snapshot is stored only over the version that was current when the provider was asked, so a response that
 * was overtaken by another one changes nothing, and each change has one event.
 *
 * @param known the row as it was before the provider was asked.
 * @param submitted what was submitted before the provider said it.
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
  // Not every change has an event.
  if (isChanged) noteChange(em, { appId: known.appId, what: 'fiat_customer.updated', id: known.entityId });
  await tell(context, known, next.snapshot);
  return { ...known, ...next };
}

/** The stored snapshot with its members in the order of `storedSnapshot`. */
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
