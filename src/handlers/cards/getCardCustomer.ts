import {
  getCardCustomer,
  type LookedAtCustomer,
  lookAtCustomer,
} from '../../domain/money/cards/card-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'getCardCustomer', LookedAtCustomer> = ({ query }, context) =>
  lookAtCustomer(context, query.environment);

export const run: PreparedHandler<'getCardCustomer', LookedAtCustomer> = async (
  { query },
  context,
  prepared,
) => ({ data: await getCardCustomer(context, query.environment, prepared) });
