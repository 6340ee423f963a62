import type { PlanContext } from '../../../operation-context.ts';
import type { FiatEnvironment } from '../../../ports/fiat-providers.ts';
import { FiatCustomerEntity, type StoredFiatCustomer } from './fiat-customer.entity.ts';
import type { FiatEntity } from './fiat-entity.ts';
import { environmentOf, type NamedProvider } from './find-provider.ts';

type ReadContext = Pick<PlanContext, 'app' | 'em'>;

/** The customer that an entity is at a provider; undefined before verification was started. */
export async function getCustomer(
  { app, em }: ReadContext,
  { type, id }: FiatEntity,
  named: NamedProvider,
): Promise<StoredFiatCustomer | undefined> {
  const where = { appId: app.id, entityType: type, entityId: id, provider: named.provider };
  const found = await em.findOne(FiatCustomerEntity, { ...where, environment: environmentOf(named) });
  return found ?? undefined;
}

/** The customers that an entity is, one for each provider and environment; a handful at most. */
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

// There is one provider with two environments.
const MAX_CUSTOMERS = 20;

/** The customer with this id at a provider, of any app. */
export async function getCustomerById(
  em: PlanContext['em'],
  { provider, environment }: { readonly provider: string; readonly environment: FiatEnvironment },
  customerId: string,
): Promise<StoredFiatCustomer | undefined> {
  return (await em.findOne(FiatCustomerEntity, { provider, environment, customerId })) ?? undefined;
}
