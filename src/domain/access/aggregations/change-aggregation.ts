import { ApiError } from '../../../errors.ts';
import type { CreateAggregationRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type AggregationDefinition, compileAggregation } from '../../../policy/aggregation.ts';
import { PolicyFormatError } from '../../../policy/policy-format-error.ts';
import { lockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { findAggregation, type StoredAggregation } from './find-aggregation.ts';

const MAX_AGGREGATIONS = 10;

/**
 * Makes an aggregation; it counts what is signed from now on.
 *
 * @throws ApiError invalid_aggregation_format for one without a meaning, and when the app has ten already.
 */
export async function createAggregation(
  context: OperationContext,
  { name, owner, owner_id, ...terms }: CreateAggregationRequest,
): Promise<StoredAggregation> {
  checkTerms(terms as unknown as AggregationDefinition);
  const ownerId = (await resolveOwner(context, { owner, owner_id })) ?? null;
  await requireRoom(context);
  const aggregation = { id: context.ids.cuid2(), name, terms, ownerId, createdAtMs: context.nowMs };
  await context.em
    .getKysely<Tables>()
    .insertInto('aggregations')
    .values({
      id: aggregation.id,
      app_id: context.app.id,
      name,
      definition: JSON.stringify(terms),
      window_seconds: terms.window.seconds,
      owner_id: ownerId,
      created_at_ms: context.nowMs,
    })
    .execute();
  return aggregation;
}

/** Makes others who count the app's aggregations wait until the transaction ends. */
async function requireRoom(context: OperationContext): Promise<void> {
  await lockName(context.em, `aggregations:${context.app.id}`);
  const { count } = await context.em
    .getKysely<Tables>()
    .selectFrom('aggregations')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('app_id', '=', context.app.id)
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_AGGREGATIONS) {
    throw new ApiError('invalid_aggregation_format', `An app has at most ${MAX_AGGREGATIONS} aggregations.`);
  }
}

function checkTerms(terms: AggregationDefinition): void {
  try {
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
 * Deletes an aggregation with its records; conditions that refer to it are false from then on.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function deleteAggregation(context: OperationContext, id: string): Promise<void> {
  const aggregation = await findAggregation(context, id);
  await requireOwner(context, { ownerId: aggregation.ownerId });
  const database = context.em.getKysely<Tables>();
  await database.deleteFrom('aggregation_records').where('aggregation_id', '=', id).execute();
  await database.deleteFrom('aggregations').where('id', '=', id).execute();
}
