import { deleteAggregation as remove } from '../../domain/access/aggregations/change-aggregation.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteAggregation: Handler<'deleteAggregation'> = async ({ path }, context) => {
  await remove(context, path.aggregation_id);
  return { success: true };
};
