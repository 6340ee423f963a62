import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, notFound } from '../../../errors.ts';
import type { AuditRecord } from '../../../ports/audit.ts';
import type { UnitContext } from '../../../ports/operation-context.ts';
import type { Entropy, Ids } from '../../../ports/runtime.ts';
import { lockName } from '../../../storage/locks.ts';
import { AuditRecordEntity } from '../../base/audit/audit.entity.ts';
import { writeRecord } from '../../base/audit/audit-log.ts';
import { sequenceAll } from '../../base/audit/audit-tree.ts';
import { findApp } from '../apps/find-app.ts';
import { OperatorEntity, type StoredOperator } from './operator.entity.ts';

/** Where an operator's call comes from. */
type OperatorOrigin = 'admin_port' | 'command_line' | 'control_plane';

/** The caller of a verb that is called by operators, so that no app is authenticated. */
export interface OperatorCaller {
  readonly origin: OperatorOrigin;
  /**
   * The operator to whom the caller's secret belongs. Undefined for a caller without an operator's secret, who may act
   * on every app.
   */
  readonly operator?: Pick<StoredOperator, 'id' | 'appId' | 'name' | 'role'> | undefined;
}

/**
 * Refuses an operator of another app. The error is the same as for a resource that does not exist.
 *
 * @throws ApiError not_found
 */
export function requireOwnApp({ operator }: OperatorCaller, appId: string, noun: string): void {
  if (operator !== undefined && operator.appId !== appId) throw notFound(noun);
}

/** Returns whether the server has ever had an operator. */
export async function hasOperators(em: SqlEntityManager): Promise<boolean> {
  return (await em.find(OperatorEntity, {}, { limit: 1 })).length > 0;
}

/**
 * Finds the operator with this secret. Returns undefined for an unknown secret and for the secret of a removed
 * operator.
 */
export async function operatorWithSecret(
  em: SqlEntityManager,
  secret: string,
): Promise<StoredOperator | undefined> {
  // A secret is 32 random bytes, so the time of this look-up by its hash reveals nothing about it.
  return (await em.findOne(OperatorEntity, { secretHash: hashOperatorSecret(secret) })) ?? undefined;
}

/** Returns the hex SHA-256. For a secret of 32 random bytes, it is as safe as a slow password hash. */
function hashOperatorSecret(secret: string): string {
  return hash('sha256', secret);
}

/**
 * Serializes, until the transaction ends, the changes to an app's operators and the changes that they make. Take this
 * lock before all others.
 */
function lockOperators(em: SqlEntityManager, appId: string): Promise<void> {
  return lockName(em, 'operators', `operators ${appId}`);
}

/**
 * Checks, in the transaction of a change, that the calling operator still exists and still has the role. Both may have
 * changed since the secret was checked. A caller without an operator's secret passes.
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

/** The roles of operators, lowest first. A role includes all lower roles. */
const operatorRoles = ['viewer', 'developer', 'admin'] as const;

export type OperatorRole = (typeof operatorRoles)[number];

/** Returns whether an operator with this role may do something that requires the role `needed`. */
export function includesRole(role: OperatorRole, needed: OperatorRole): boolean {
  return operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed);
}

interface RecordingContext extends UnitContext {
  readonly nowMs: number;
  readonly by: OperatorCaller;
}

/** The maximum length of a recorded target. Ids are shorter, but callers can send longer strings in their place. */
const MAX_TARGET = 100;

/**
 * Records a change in the audit log, in the transaction of the change. `targets` contains ids and roles, never
 * secrets.
 *
 * @param change `appId` is null if the change concerns no app.
 */
export function recordChange(
  context: RecordingContext,
  change: {
    readonly appId: string | null;
    readonly action: string;
    readonly targets: Record<string, string>;
  },
): Promise<void> {
  return record(context, { ...change, result: 'done' });
}

/**
 * Records that an operator read something or was refused. `result` is `done` or an error code. Calls without an
 * operator's secret are not recorded.
 */
export async function recordCall(
  context: RecordingContext,
  call: { readonly action: string; readonly targets: Record<string, string>; readonly result: string },
): Promise<void> {
  const { operator } = context.by;
  if (operator === undefined) return;
  await record(context, { ...call, appId: operator.appId });
}

/** Records a call on the admin port with a secret that belongs to no operator. */
export function recordWrongSecret(
  { em, notes, nowMs }: Pick<RecordingContext, 'em' | 'notes' | 'nowMs'>,
  call: Pick<AuditRecord, 'operation' | 'requestId' | 'code' | 'status' | 'omitted'>,
): Promise<void> {
  const by = { kind: 'operator', origin: 'admin_port' } as const;
  return writeRecord({ em, notes }, { ...call, atMs: nowMs, appId: null, by, ids: {}, decision: 'deny' });
}

interface Action {
  readonly appId: string | null;
  readonly action: string;
  readonly targets: Readonly<Record<string, string>>;
  readonly result: string;
}

function record(
  { em, notes, nowMs, by: { origin, operator } }: RecordingContext,
  { appId, action, targets, result }: Action,
): Promise<void> {
  // Paths can contain control characters, which must not reach the terminal of someone who reads the log.
  const short = Object.entries(targets).map(([name, value]) => [
    name,
    value.slice(0, MAX_TARGET).replaceAll(/\p{Cc}/gu, '?'),
  ]);
  return writeRecord(
    { em, notes },
    {
      atMs: nowMs,
      appId,
      by: { kind: 'operator', origin, operatorId: operator?.id, role: operator?.role },
      operation: action,
      ids: Object.fromEntries(short),
      decision: result === 'operator_role_required' ? 'deny' : 'allow',
      code: result === 'done' ? undefined : result,
    },
  );
}

interface AddingContext extends RecordingContext {
  readonly ids: Ids;
  readonly entropy: Entropy;
}

/** CHOICE: the maximum number of operators of an app. */
const MAX_OPERATORS = 100;

/**
 * Adds an operator to an app. Only this result contains the secret itself, which is not stored.
 *
 * @throws ApiError not_found; invalid_request when the app already has the maximum number of operators.
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
 * Changes the role of an operator.
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
 * Removes an operator. The operator's secret is refused immediately.
 *
 * CHOICE: the last admin can be removed as well. The admin port then refuses all callers, because the server has had
 * operators. The command line can add the next operator.
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

/** An entry of the audit log about an operator's action. */
interface RecordedAction {
  readonly at_ms: number;
  readonly by: {
    readonly origin: OperatorOrigin;
    readonly operator_id?: string;
    readonly role?: OperatorRole;
  };
  readonly operation: string;
  readonly ids: Readonly<Record<string, string>>;
  readonly code?: string;
}

/** One action of an operator, or a refused attempt. */
interface OperatorRecord {
  readonly sequence: number;
  readonly entry: RecordedAction;
  readonly operatorName: string | null;
}

/** Converts an operator to the form that the admin port and the command line show, without the secret. */
export function operatorView({ id, appId, name, role, createdAtMs }: StoredOperator) {
  return { id, app_id: appId, name, role, created_at_ms: createdAtMs };
}

export function operatorRecordView({ sequence, entry, operatorName }: OperatorRecord) {
  return {
    sequence,
    at_ms: entry.at_ms,
    origin: entry.by.origin,
    operator_id: entry.by.operator_id ?? null,
    operator_name: operatorName,
    operator_role: entry.by.role ?? null,
    action: entry.operation,
    targets: { ...entry.ids },
    result: entry.code ?? 'done',
  };
}

interface ReadingContext {
  readonly em: SqlEntityManager;
  readonly by: OperatorCaller;
}

/**
 * Lists the operators of an app, oldest first, without removed operators.
 *
 * @throws ApiError not_found
 */
export async function listOperators({ em, by }: ReadingContext, appId: string): Promise<StoredOperator[]> {
  requireOwnApp(by, appId, 'App');
  await findApp(em, appId);
  return em.find(
    OperatorEntity,
    { appId, removedAtMs: null },
    { orderBy: { createdAtMs: 'asc', id: 'asc' } },
  );
}

/**
 * Lists one page of the audit records about an app that operators caused, newest first.
 *
 * @param page `before`: the sequence of the last record of the previous page.
 * @throws ApiError not_found
 */
export async function listOperatorRecords(
  { em, by, nowMs }: ReadingContext & { readonly nowMs: number },
  appId: string,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<OperatorRecord[]> {
  requireOwnApp(by, appId, 'App');
  await findApp(em, appId);
  // The newest records may have no place in the log yet, and then they have no sequence.
  await sequenceAll(em, nowMs);
  const older = page.before === undefined ? {} : { leafIndex: { $lt: page.before - 1 } };
  const records = await em.find(
    AuditRecordEntity,
    { appId, origin: { $ne: null }, ...older },
    { orderBy: { leafIndex: 'desc' }, limit: page.limit },
  );
  const read = records.map(({ leafIndex, entry }) => ({
    sequence: leafIndex + 1,
    entry: JSON.parse(entry) as RecordedAction,
  }));
  const ids = [...new Set(read.flatMap(({ entry }) => entry.by.operator_id ?? []))];
  const operators = await em.find(OperatorEntity, { id: { $in: ids } });
  const names = new Map(operators.map(({ id, name }) => [id, name]));
  return read.map(({ sequence, entry }) => ({
    sequence,
    entry,
    // The log contains ids instead of names, because names are personal data.
    operatorName: names.get(entry.by.operator_id ?? '') ?? null,
  }));
}
