import { ApiError, notFound } from '../../../errors.ts';
import type { Entropy } from '../../../ports/entropy.ts';
import type { Ids } from '../../../ports/ids.ts';
import { findApp } from '../apps/find-app.ts';
import { hashOperatorSecret, lockOperators } from './find-operator.ts';
import { OperatorEntity, type StoredOperator } from './operator.entity.ts';
import { requireOwnApp } from './operator-caller.ts';
import type { OperatorRole } from './operator-role.ts';
import { type RecordingContext, recordChange } from './record-operator-action.ts';

interface AddingContext extends RecordingContext {
  readonly ids: Ids;
  readonly entropy: Entropy;
}

/** CHOICE: the maximum of an app's operators. */
const MAX_OPERATORS = 100;

/**
 * Adds an operator to an app. Only this result ever contains the secret's text.
 *
 * @throws ApiError not_found; invalid_request when the app has as many operators as it can have.
 */
export async function addOperator(
  context: AddingContext,
  appId: string,
  { name, role }: { readonly name: string; readonly role: OperatorRole },
): Promise<{ operator: StoredOperator; secret: string }> {
  await lockApp(context, appId);
  const count = await context.em.count(OperatorEntity, { appId, removedAtMs: null });
  if (count >= MAX_OPERATORS) {
    throw new ApiError('invalid_request', `an app has at most ${MAX_OPERATORS} operators`);
  }
  const secret = `service_operator_secret_${Buffer.from(context.entropy.bytes(32)).toString('base64url')}`;
  const operator = context.em.create(OperatorEntity, {
    id: context.ids.cuid2(),
    appId,
    name,
    role,
    secretHash: hashOperatorSecret(secret),
    createdAtMs: context.nowMs,
    removedAtMs: null,
  });
  await context.em.flush();
  await recordChange(context, {
    appId,
    action: 'addOperator',
    targets: { operator_id: operator.id, role },
  });
  return { operator, secret };
}

/**
 * Gives an operator another role.
 *
 * @throws ApiError not_found, also for a removed operator.
 */
export async function changeOperatorRole(
  context: RecordingContext,
  appId: string,
  { operatorId, role }: { readonly operatorId: string; readonly role: OperatorRole },
): Promise<StoredOperator> {
  const operator = await findForChange(context, appId, operatorId);
  const previous = operator.role;
  operator.role = role;
  await context.em.flush();
  const targets = { operator_id: operator.id, role, previous_role: previous };
  await recordChange(context, { appId, action: 'changeOperatorRole', targets });
  return operator;
}

/**
 * Removes an operator: the secret is refused from now on.
 *
 * CHOICE: the last admin can be removed as well. The admin port then refuses all callers, as it has had operators; the
 * command line adds the next one.
 *
 * @throws ApiError not_found, also for a removed operator.
 */
export async function removeOperator(
  context: RecordingContext,
  appId: string,
  operatorId: string,
): Promise<StoredOperator> {
  const operator = await findForChange(context, appId, operatorId);
  operator.secretHash = null;
  operator.removedAtMs = context.nowMs;
  await context.em.flush();
  const targets = { operator_id: operator.id, role: operator.role };
  await recordChange(context, { appId, action: 'removeOperator', targets });
  return operator;
}

async function findForChange(
  context: RecordingContext,
  appId: string,
  operatorId: string,
): Promise<StoredOperator> {
  await lockApp(context, appId);
  const operator = await context.em.findOne(OperatorEntity, { id: operatorId, appId, removedAtMs: null });
  if (operator === null) throw notFound('Operator');
  return operator;
}

async function lockApp({ em, by }: RecordingContext, appId: string): Promise<void> {
  requireOwnApp(by, appId, 'App');
  await lockOperators(em, appId);
  await findApp(em, appId);
}
