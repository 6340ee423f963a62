import { notFound } from '../../../errors.ts';
import type { Aggregation } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { AggregationEntity, type StoredAggregation } from './aggregation.entity.ts';

/**
 * An aggregation of the app.
 *
 * @throws ApiError not_found
 */
export async function findAggregation(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  id: string,
): Promise<StoredAggregation> {
  const aggregation = await em.findOne(AggregationEntity, { id, appId: app.id });
  if (aggregation === null) throw notFound('Aggregation');
  return aggregation;
}

/** An aggregation in wire form. */
export function aggregationView(aggregation: StoredAggregation): Aggregation {
  const { id, name, definition, ownerId, createdAtMs } = aggregation;
  return { id, name, ...definition, owner_id: ownerId, created_at: createdAtMs };
}
