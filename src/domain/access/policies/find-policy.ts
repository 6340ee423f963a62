import { invalidQuery, notFound } from '../../../errors.ts';
import type { PolicyRuleResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { type PolicyDocument, PolicyEntity } from './policy.entity.ts';

type PolicyContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

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

/** A policy with its rules read. */
export function readPolicy(document: PolicyDocument): StoredPolicy {
  const { id, name, chainType, revision, ownerId, createdAtMs } = document;
  const rules = JSON.parse(document.rules) as PolicyRuleResponse[];
  return { id, name, chainType, rules, revision, ownerId, createdAtMs };
}

/**
 * A policy of the app.
 *
 * @throws ApiError not_found
 */
export async function findPolicy({ app, em }: PolicyContext, id: string): Promise<StoredPolicy> {
  const document = await em.findOne(PolicyEntity, { id, appId: app.id });
  if (document === null) throw notFound('Policy');
  return readPolicy(document);
}

/** The app's policies among these ids. */
export async function listPoliciesOfIds(
  { app, em }: PolicyContext,
  ids: readonly string[],
): Promise<StoredPolicy[]> {
  if (ids.length === 0) return [];
  return (await em.find(PolicyEntity, { id: { $in: [...ids] }, appId: app.id })).map(readPolicy);
}

/**
 * One page of the app's policies, newest first, without their rules.
 *
 * @param page `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no policy.
 */
export async function listPolicies(
  { app, em }: PolicyContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ policies: Omit<StoredPolicy, 'rules'>[]; nextCursor: string | null }> {
  // Rules of a policy may be a megabyte.
  const exclude = ['rules'] as const;
  const after =
    cursor === undefined
      ? undefined
      : await em.findOne(PolicyEntity, { id: cursor, appId: app.id }, { exclude });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const where = { appId: app.id };
  const { page, nextCursor } = await findPage(em, PolicyEntity, where, { after, limit, exclude });
  return { policies: page, nextCursor };
}

/**
 * A policy, locked for update until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findPolicyForUpdate({ app, em }: PolicyContext, id: string): Promise<StoredPolicy> {
  const document = await em.findOne(PolicyEntity, { id, appId: app.id }, lockForUpdate);
  if (document === null) throw notFound('Policy');
  return readPolicy(document);
}
