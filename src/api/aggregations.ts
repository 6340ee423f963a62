import {
  aggregationView,
  createAggregation as createAggregationVerb,
  deleteAggregation as deleteAggregationVerb,
  findAggregation,
} from '../domain/access/aggregations/aggregation.ts';
import type { Handler } from '../ports/operation-context.ts';

export const createAggregation: Handler<'createAggregation'> = async ({ body }, context) =>
  aggregationView(await createAggregationVerb(context, body));

export const deleteAggregation: Handler<'deleteAggregation'> = async ({ path }, context) => {
  await deleteAggregationVerb(context, path.aggregation_id);
  return { success: true };
};

export const getAggregation: Handler<'getAggregation'> = async ({ path }, context) =>
  aggregationView(await findAggregation(context, path.aggregation_id));
