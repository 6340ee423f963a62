import {
  askToOpen,
  createCardCustomer,
  type OpenedCustomer,
} from '../../domain/money/cards/card-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createCardCustomer', OpenedCustomer> = ({ body }, context) =>
  askToOpen(context, body.environment);

export const run: PreparedHandler<'createCardCustomer', OpenedCustomer> = async (
  { body },
  context,
  prepared,
) => ({ data: await createCardCustomer(context, body.environment, prepared) });
