import { notFound } from '../../../errors.ts';
import type { ConditionSet } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

export type ConditionSetContext = Pick<OperationContext, 'app' | 'em'>;

/** A condition set as stored. */
export interface StoredConditionSet {
  readonly id: string;
  readonly name: string;
  readonly owner_id: string | null;
  readonly created_at_ms: number;
}

function query({ app, em }: ConditionSetContext, id: string) {
  return em
    .getKysely<Tables>()
    .selectFrom('condition_sets')
    .select(['id', 'name', 'owner_id', 'created_at_ms'])
    .where('id', '=', id)
    .where('app_id', '=', app.id);
}

/**
 * A condition set of the app.
 *
 * @throws ApiError not_found
 */
export async function findConditionSet(
  context: ConditionSetContext,
  id: string,
): Promise<StoredConditionSet> {
  const row = await query(context, id).executeTakeFirst();
  if (row === undefined) throw notFound('Condition set');
  return row;
}

/** The app's condition sets among these ids. */
export async function listConditionSets(
  { app, em }: ConditionSetContext,
  ids: readonly string[],
): Promise<StoredConditionSet[]> {
  if (ids.length === 0) return [];
  return em
    .getKysely<Tables>()
    .selectFrom('condition_sets')
    .select(['id', 'name', 'owner_id', 'created_at_ms'])
    .where('id', 'in', ids)
    .where('app_id', '=', app.id)
    .execute();
}

/**
 * A condition set that is about to change, held until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findConditionSetForUpdate(
  context: ConditionSetContext,
  id: string,
): Promise<StoredConditionSet> {
  const row = await query(context, id).forUpdate().executeTakeFirst();
  if (row === undefined) throw notFound('Condition set');
  return row;
}

/** A condition set as the wire has it. */
export function conditionSetView({ id, name, owner_id, created_at_ms }: StoredConditionSet): ConditionSet {
  return { id, name, owner_id, created_at: created_at_ms };
}
