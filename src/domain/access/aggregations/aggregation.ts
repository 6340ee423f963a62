import type { SqlEntityManager } from '@mikro-orm/sql';
import { type AggregationDefinition, compileAggregation } from '../../../engine/policy/aggregation.ts';
import { PolicyFormatError } from '../../../engine/policy/condition-source.ts';
import { requireFewFunctions } from '../../../engine/policy/conditions/abi-calldata.ts';
import { ApiError, notFound } from '../../../errors.ts';
import type { Aggregation, CreateAggregationRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireAuthorization } from '../owners/require-authorization.ts';
import { AggregationEntity, AggregationRecordEntity, type StoredAggregation } from './aggregation.entity.ts';

/**
 * Finds an aggregation of the app.
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

/** Converts an aggregation to wire form. */
export function aggregationView(aggregation: StoredAggregation): Aggregation {
  const { id, name, definition, ownerId, createdAtMs } = aggregation;
  return { id, name, ...definition, owner_id: ownerId, created_at: createdAtMs };
}

const MAX_AGGREGATIONS = 10;

/**
 * Creates an aggregation. It counts only requests that are signed after its creation.
 *
 * @throws ApiError invalid_aggregation_format for an invalid definition, and when the app already has ten aggregations;
 * invalid_data for an owner that does not exist.
 */
export async function createAggregation(
  context: OperationContext,
  { name, owner, owner_id, ...terms }: CreateAggregationRequest,
): Promise<StoredAggregation> {
  checkTerms(terms);
  const ownerId = (await resolveOwner(context, { owner, owner_id })) ?? null;
  await requireBelowLimit(context);
  const aggregation = context.em.create(AggregationEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    name,
    definition: terms,
    windowSeconds: terms.window.seconds,
    ownerId,
    createdAtMs: context.nowMs,
  });
  await context.em.flush();
  return aggregation;
}

/**
 * Locks the app's aggregations against concurrent creations, and refuses an aggregation beyond the limit.
 *
 * @throws ApiError invalid_aggregation_format
 */
async function requireBelowLimit(context: OperationContext): Promise<void> {
  await lockName(context.em, 'aggregations', `aggregations:${context.app.id}`);
  const count = await context.em.count(AggregationEntity, { appId: context.app.id });
  if (count >= MAX_AGGREGATIONS) {
    throw new ApiError(
      'invalid_aggregation_format',
      `an app can have at most ${MAX_AGGREGATIONS} aggregations`,
    );
  }
}

function checkTerms(terms: AggregationDefinition): void {
  try {
    requireFewFunctions([terms.metric, ...(terms.conditions ?? []), ...(terms.group_by ?? [])]);
    compileAggregation(terms);
  } catch (error) {
    if (!(error instanceof PolicyFormatError)) throw error;
    const { pointer, message } = error;
    throw new ApiError('invalid_aggregation_format', `${pointer}: ${message}`, {
      cause: error,
      data: { issues: [{ in: 'body', pointer, message }] },
    });
  }
}

/**
 * Deletes an aggregation with its records. Conditions that refer to it become false.
 *
 * @throws ApiError not_found, and what `requireAuthorization` throws.
 */
export async function deleteAggregation(context: OperationContext, id: string): Promise<void> {
  const aggregation = await findAggregation(context, id);
  await requireAuthorization(context, { ownerId: aggregation.ownerId });
  await context.em.nativeDelete(AggregationRecordEntity, { aggregationId: id });
  await context.em.remove(aggregation).flush();
}

// HOT: deletes up to a limit (bench `policy`), which the entity manager cannot.

const MS_PER_SECOND = 1000;

/**
 * Deletes up to `limit` records that are older than their aggregation's window, and returns how many. The window of
 * an aggregation never changes.
 */
export async function dropStaleRecords(em: SqlEntityManager, nowMs: number, limit: number): Promise<number> {
  const database = em.getKysely<Tables>();
  const aggregations = await database.selectFrom('aggregations').select(['id', 'window_seconds']).execute();
  let dropped = 0;
  for (const { id, window_seconds: windowSeconds } of aggregations) {
    const { numDeletedRows } = await database
      .deleteFrom('aggregation_records')
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('aggregation_records')
          .select('id')
          .where('aggregation_id', '=', id)
          .where('recorded_at_ms', '<=', nowMs - windowSeconds * MS_PER_SECOND)
          .limit(limit - dropped),
      )
      .executeTakeFirst();
    dropped += Number(numDeletedRows);
    if (dropped >= limit) break;
  }
  return dropped;
}
