import * as aggregations from '../domain/access/aggregations/aggregation.ts';
import { aggregationView, findAggregation } from '../domain/access/aggregations/aggregation.ts';
import type { Handler } from '../ports/operation-context.ts';

export const createAggregation: Handler<'createAggregation'> = async ({ body }, context) =>
  aggregationView(await aggregations.createAggregation(context, body));

export const deleteAggregation: Handler<'deleteAggregation'> = async ({ path }, context) => {
  await aggregations.deleteAggregation(context, path.aggregation_id);
  return { success: true };
};

export const getAggregation: Handler<'getAggregation'> = async ({ path }, context) =>
  aggregationView(await findAggregation(context, path.aggregation_id));
