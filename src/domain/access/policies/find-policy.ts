import { ApiError, notFound } from '../../../errors.ts';
import type { PolicyRuleResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

type PolicyContext = Pick<OperationContext, 'app' | 'em'>;

/** A policy as stored. */
export interface StoredPolicy {
  readonly id: string;
  readonly name: string;
  readonly chainType: string;
  readonly rules: readonly PolicyRuleResponse[];
  readonly revision: number;
  readonly ownerId: string | null;
  readonly createdAtMs: number;
}

const policyColumns = ['id', 'name', 'chain_type', 'rules', 'revision', 'owner_id', 'created_at_ms'] as const;

function query({ app, em }: PolicyContext, id: string) {
  return em
    .getKysely<Tables>()
    .selectFrom('policies')
    .select(policyColumns)
    .where('id', '=', id)
    .where('app_id', '=', app.id);
}

type PolicyRow = NonNullable<Awaited<ReturnType<ReturnType<typeof query>['executeTakeFirst']>>>;

function fromRow(row: PolicyRow): StoredPolicy {
  return {
    id: row.id,
    name: row.name,
    chainType: row.chain_type,
    rules: JSON.parse(row.rules) as PolicyRuleResponse[],
    revision: row.revision,
    ownerId: row.owner_id,
    createdAtMs: row.created_at_ms,
  };
}

/**
 * A policy of the app.
 *
 * @throws ApiError not_found
 */
export async function findPolicy(context: PolicyContext, id: string): Promise<StoredPolicy> {
  const row = await query(context, id).executeTakeFirst();
  if (row === undefined) throw notFound('Policy');
  return fromRow(row);
}

/** The app's policies among these ids. */
export async function listPolicies(
  { app, em }: PolicyContext,
  ids: readonly string[],
): Promise<StoredPolicy[]> {
  if (ids.length === 0) return [];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('policies')
    .select(policyColumns)
    .where('id', 'in', ids)
    .where('app_id', '=', app.id)
    .execute();
  return rows.map(fromRow);
}

/**
 * A policy, locked for update until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findPolicyForUpdate(context: PolicyContext, id: string): Promise<StoredPolicy> {
  const row = await query(context, id).forUpdate().executeTakeFirst();
  if (row === undefined) throw notFound('Policy');
  return fromRow(row);
}

/**
 * Checks that the policies named in a body exist and match the wallet's chain type, and locks them against deletion.
 *
 * @param pointer JSON pointer to the array that names them.
 * @throws ApiError invalid_data
 */
export async function requirePolicies(
  context: PolicyContext,
  ids: readonly string[],
  chainType: string,
  pointer: string,
): Promise<void> {
  for (const [index, id] of ids.entries()) {
    const own = query(context, id);
    const row = await own.forKeyShare().executeTakeFirst();
    const issue = { in: 'body', pointer: `${pointer}/${index}` };
    if (row === undefined) {
      throw new ApiError('invalid_data', `${issue.pointer}: no policy \`${id}\``, {
        data: { issues: [{ ...issue, message: `no policy \`${id}\`` }] },
      });
    }
    if (row.chain_type !== chainType) {
      const message = `the policy is for ${row.chain_type}, the wallet is on ${chainType}`;
      throw new ApiError('invalid_data', `${issue.pointer}: ${message}`, {
        data: { issues: [{ ...issue, message }] },
      });
    }
  }
}
