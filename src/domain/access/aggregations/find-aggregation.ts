import { notFound } from '../../../errors.ts';
import type { Aggregation, CreateAggregationRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

/** What an aggregation measures: the request that made it, without name and owner. */
type AggregationTerms = Pick<
  CreateAggregationRequest,
  'method' | 'metric' | 'conditions' | 'group_by' | 'window'
>;

/** An aggregation as stored. */
export interface StoredAggregation {
  readonly id: string;
  readonly name: string;
  readonly terms: AggregationTerms;
  readonly ownerId: string | null;
  readonly createdAtMs: number;
}

/** The app's aggregations among these ids. */
async function listAggregations(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  ids: readonly string[],
): Promise<StoredAggregation[]> {
  if (ids.length === 0) return [];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('aggregations')
    .select(['id', 'name', 'definition', 'owner_id', 'created_at_ms'])
    .where('id', 'in', ids)
    .where('app_id', '=', app.id)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    terms: JSON.parse(row.definition) as AggregationTerms,
    ownerId: row.owner_id,
    createdAtMs: row.created_at_ms,
  }));
}

/**
 * An aggregation of the app.
 *
 * @throws ApiError not_found
 */
export async function findAggregation(
  context: Pick<OperationContext, 'app' | 'em'>,
  id: string,
): Promise<StoredAggregation> {
  const [aggregation] = await listAggregations(context, [id]);
  if (aggregation === undefined) throw notFound('Aggregation');
  return aggregation;
}

/** An aggregation as the wire has it. */
export function aggregationView({ id, name, terms, ownerId, createdAtMs }: StoredAggregation): Aggregation {
  return { id, name, ...terms, owner_id: ownerId, created_at: createdAtMs };
}
