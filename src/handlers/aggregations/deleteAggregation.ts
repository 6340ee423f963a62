import { deleteAggregation } from '../../domain/access/aggregations/change-aggregation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteAggregation'> = async ({ path }, context) => {
  await deleteAggregation(context, path.aggregation_id);
  return { success: true };
};
