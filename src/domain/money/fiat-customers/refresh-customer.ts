import type { SqlEntityManager } from '@mikro-orm/sql';
import { isUnavailable } from '../../../errors.ts';
import type { OperationContext, PlanContext, Services } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import type {
  CustomerSnapshot,
  FiatEnvironment,
  FiatHint,
  FiatPlace,
} from '../../../ports/fiat-providers.ts';
import { lockUnlocked } from '../../../storage/locks.ts';
import { getOrganization } from '../../access/organizations/find-organization.ts';
import { getUser } from '../../access/user-records/find-user.ts';
import { type Claimant, claimedUntil } from '../../base/processes/claims.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { FiatCustomerEntity, type StoredFiatCustomer } from './fiat-customer.entity.ts';
import { type FiatEntity, findFiatEntity } from './fiat-entity.ts';
import { customersOf } from './find-customer.ts';
import { storeSnapshot } from './store-snapshot.ts';

/** How long a response of the provider counts as current for lists. */
const CURRENT_MS = 5000;
/** How long a claimed customer belongs to the process that claimed it. */
const LEASE_MS = 60_000;

/** A customer and what the provider says about it; undefined if the provider could not be asked. */
export interface AskedAgain {
  readonly known: StoredFiatCustomer;
  readonly snapshot: CustomerSnapshot | undefined;
}

/**
 * The verifications of an entity, newest first. Those that were not checked within five seconds are asked about again,
 * so that a revocation shows at once. If the provider is unreachable, the stored status counts.
 *
 * @throws ApiError not_found
 */
export async function askAgain(context: PlanContext, entity: FiatEntity): Promise<AskedAgain[]> {
  const customers = await customersOf(context, await findFiatEntity(context, entity));
  return Promise.all(
    customers.map(async (known) => {
      const isCurrent = known.checkedAtMs + CURRENT_MS > context.nowMs && known.checkedAtMs <= context.nowMs;
      return { known, snapshot: isCurrent ? undefined : await askAbout(context, known) };
    }),
  );
}

/** Stores what was asked, each in a transaction of its own; returns the current rows. */
export function storeAll(
  context: Pick<OperationContext, 'ids' | 'nowMs' | 'inUnit'>,
  planned: Planned<AskedAgain[]>,
): Promise<StoredFiatCustomer[]> {
  return Promise.all(
    unwrapPlan(planned).map(({ known, snapshot }) =>
      snapshot === undefined
        ? known
        : context.inUnit((em) => storeSnapshot({ ...context, em }, known, snapshot)),
    ),
  );
}

/** Asks about a customer; undefined if that is impossible now. */
export async function askAbout(
  { fiatProviders, log }: Pick<Services, 'fiatProviders' | 'log'>,
  { provider, environment, customerId }: StoredFiatCustomer,
): Promise<CustomerSnapshot | undefined> {
  try {
    return await fiatProviders.find(provider, environment as FiatEnvironment)?.customer(customerId);
  } catch (err) {
    if (!isUnavailable(err)) throw err;
    log.warn({ err, provider, environment }, 'the provider is unavailable; it is asked again');
    return undefined;
  }
}

/**
 * Makes the customers due that hints of a provider name. Hints about deposits need nothing here: their history is read
 * all the time; nor do those about payouts, which are asked about every two seconds.
 */
export async function hurryCustomers(
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

// HOT: runs every second, and rarely finds a row; a prepared statement takes a tenth of the CPU (idle sandbox).
const selectDue = prepareQuery<{ nowMs: number }, { id: string }>((database, { nowMs }) =>
  database.selectFrom('fiat_customers').select('id').where('next_check_at_ms', '<=', nowMs).limit(1),
);

/**
 * Claims customers that are due, the most overdue first; the claim of a process that dies is released, or expires.
 *
 * @param wanted `busy`: providers whose customers are left out.
 */
export async function claimDueCustomers(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { busy, limit }: { readonly busy: readonly FiatPlace[]; readonly limit: number },
): Promise<readonly StoredFiatCustomer[]> {
  const { rows } = await selectDue(em, { nowMs });
  if (rows.length === 0) return [];
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

/** Makes the customers due that a process had claimed before it ended. */
export async function releaseCustomersOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    FiatCustomerEntity,
    { claimedBy: dead.owner, nextCheckAtMs: claimedUntil(dead) },
    { nextCheckAtMs: dead.nowMs },
  );
}

/**
 * Stores what the provider said about a claimed customer. A customer whose user or organization is gone is forgotten.
 */
export async function storeClaimed(
  services: Pick<Services, 'ids'>,
  { em, nowMs }: { readonly em: SqlEntityManager; readonly nowMs: number },
  { known, snapshot }: AskedAgain,
): Promise<void> {
  if (!(await exists({ em, app: { id: known.appId } }, known))) {
    await em.nativeDelete(FiatCustomerEntity, { id: known.id });
  } else if (snapshot !== undefined) {
    await storeSnapshot({ ...services, em, nowMs }, known, snapshot);
  }
}

async function exists(
  context: Pick<PlanContext, 'app' | 'em'>,
  { entityType, entityId }: StoredFiatCustomer,
): Promise<boolean> {
  const found = entityType === 'user' ? getUser : getOrganization;
  return (await found(context, entityId)) !== undefined;
}
