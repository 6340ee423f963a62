import { aggregationView, findAggregation } from '../../domain/access/aggregations/find-aggregation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getAggregation'> = async ({ path }, context) =>
  aggregationView(await findAggregation(context, path.aggregation_id));
