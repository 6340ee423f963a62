import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError } from '../../../errors.ts';
import { lockName } from '../../../storage/locks.ts';
import { OperatorEntity, type StoredOperator } from './operator.entity.ts';
import type { OperatorCaller } from './operator-caller.ts';

/** Whether the server has ever had an operator. */
export async function hasOperators(em: SqlEntityManager): Promise<boolean> {
  return (await em.find(OperatorEntity, {}, { limit: 1 })).length > 0;
}

/** The operator with this secret; undefined for an unknown secret, and for one whose operator was removed. */
export async function operatorWithSecret(
  em: SqlEntityManager,
  secret: string,
): Promise<StoredOperator | undefined> {
  // A secret is 32 random bytes, so the time of this look-up by its hash reveals nothing about it.
  return (await em.findOne(OperatorEntity, { secretHash: hashOperatorSecret(secret) })) ?? undefined;
}

/** Hex SHA-256, as safe as a slow password hash for a secret of 32 random bytes. */
export function hashOperatorSecret(secret: string): string {
  return hash('sha256', secret);
}

/**
 * Makes changes of an app's operators, and changes by them, wait for each other until the transaction ends. Taken
 * before all other locks.
 */
export function lockOperators(em: SqlEntityManager, appId: string): Promise<void> {
  return lockName(em, 'operators', `operators ${appId}`);
}

/**
 * Checks, in the transaction of a change, that its operator was not removed and did not lose the role since the
 * secret was checked.
 *
 * @throws ApiError missing_or_invalid_token
 */
export async function requireInForce(em: SqlEntityManager, { operator }: OperatorCaller): Promise<void> {
  if (operator === undefined) return;
  await lockOperators(em, operator.appId);
  const { id, role } = operator;
  if ((await em.findOne(OperatorEntity, { id, role, removedAtMs: null })) !== null) return;
  throw new ApiError('missing_or_invalid_token', 'the operator was removed or has another role now');
}
