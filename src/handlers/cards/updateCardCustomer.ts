import {
  acceptCardTerms,
  type LookedAtCustomer,
  lookAtCustomer,
} from '../../domain/money/cards/card-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'updateCardCustomer', LookedAtCustomer> = ({ body }, context) =>
  lookAtCustomer(context, body.environment);

export const run: PreparedHandler<'updateCardCustomer', LookedAtCustomer> = async (
  { body },
  context,
  prepared,
) => ({ data: await acceptCardTerms(context, body, prepared) });
