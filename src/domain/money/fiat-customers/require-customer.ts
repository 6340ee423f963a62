import { ApiError } from '../../../errors.ts';
import type { PlanContext } from '../../../operation-context.ts';
import type { FiatEntity } from './fiat-entity.ts';
import { getCustomer } from './find-customer.ts';
import { environmentOf, type NamedProvider } from './find-provider.ts';

/**
 * The provider's id of a verified customer.
 *
 * @param entity with its full id.
 * @throws ApiError invalid_state unless the customer is active and may do this.
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
          ...{ type: entity.type, id: entity.id },
          terms: customer?.snapshot.terms ?? 'not_started',
          requirements_due: [...(customer?.snapshot.requirementsDue ?? [])],
        },
      },
    },
  );
}
