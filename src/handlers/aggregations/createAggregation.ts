import { createAggregation } from '../../domain/access/aggregations/change-aggregation.ts';
import { aggregationView } from '../../domain/access/aggregations/find-aggregation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createAggregation'> = async ({ body }, context) =>
  aggregationView(await createAggregation(context, body));
