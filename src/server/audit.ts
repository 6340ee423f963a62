import { hash } from 'node:crypto';
import { ApiError } from '../errors.ts';
import type { AuditActor, AuditedChange, AuditRecord, AuditTrail } from '../ports/audit.ts';
import type { UnitContext } from '../ports/operation-context.ts';
import type { Clock } from '../ports/runtime.ts';
import { operationOf, type RequestState } from './request-state.ts';
import { inUnitOf, type OpenUnit, type UnitOfWork } from './unit-of-work.ts';

/** The maximum number of resource ids in one audit record. */
const MAX_IDS = 100;

/**
 * Returns units of work that write an audit record of their changes when they commit. Units without changes write none.
 */
export function recordingChanges(
  openUnit: OpenUnit,
  audit: AuditTrail,
  describe: () => Pick<AuditRecord, 'atMs' | 'by' | 'operation' | 'requestId' | 'phase'>,
): OpenUnit {
  return async (write) => {
    const unit = await openUnit(write);
    return {
      ...unit,
      async commit(last) {
        await recordChanges(unit, audit, describe);
        await unit.commit(last);
      },
    };
  };
}

async function recordChanges(
  unit: UnitContext,
  audit: AuditTrail,
  describe: Parameters<typeof recordingChanges>[2],
): Promise<void> {
  const { changes } = unit.notes;
  if (changes.length === 0) return;
  for (const [appId, ofApp] of Map.groupBy(changes, (change) => change.appId)) {
    await audit.record(unit, { ...describe(), appId, decision: 'allow', ...namesOf(ofApp) });
  }
}

/** Returns the kinds of changes, and the ids of the changed resources. */
function namesOf(changes: readonly AuditedChange[]): Pick<AuditRecord, 'changes' | 'ids'> {
  const ids = new Set(changes.flatMap(({ id }) => id ?? []));
  return {
    changes: [...new Set(changes.map(({ what }) => what))],
    ids: ids.size === 0 ? {} : { changed: [...ids].slice(0, MAX_IDS) },
  };
}

/**
 * CHOICE: each process records 50 denials a second for callers without valid credentials. Further denials are only
 * counted, and the next record contains their number. Without a limit, anyone could fill the log. Rate limits cover all
 * other callers.
 */
const PER_SECOND = 50;

/** Limits how many denials of unknown callers are recorded. */
interface DenialBudget {
  /** Returns whether this denial may be recorded. If not, counts it as omitted. */
  take(): boolean;
  /**
   * Writes a record with the number of denials that were omitted before it, or undefined for none. If writing fails,
   * they still count as omitted.
   */
  write(record: (omitted: number | undefined) => Promise<void>): Promise<void>;
}

export function createDenialBudget(machine: Clock): DenialBudget {
  let [second, used, omitted] = [0, 0, 0];
  return {
    take() {
      const now = Math.floor(machine.now() / 1000);
      if (now !== second) [second, used] = [now, 0];
      used += 1;
      if (used > PER_SECOND) omitted += 1;
      return used <= PER_SECOND;
    },
    async write(record) {
      const before = omitted;
      omitted = 0;
      try {
        await record(before === 0 ? undefined : before);
      } catch (failure) {
        omitted += before;
        throw failure;
      }
    },
  };
}

/** Returns whether the requests of an operation are recorded, because they change something or use a key. */
function isRecorded(state: RequestState): boolean {
  const { method, isReadOnly } = operationOf(state);
  return method !== 'GET' && isReadOnly !== true;
}

/**
 * Returns whether a refusal is recorded: the caller was not who they claimed to be, or was not allowed to do this.
 *
 * CHOICE: these are 401 and 403, denials by policies, and OAuth refusals of a wrong or used code or token. Not recorded
 * are requests that are invalid, name an unknown resource, or exceed a rate limit. Neither are requests without
 * credentials, because they guess nothing, and requests over plain HTTP or from foreign pages, whose credentials are
 * not read.
 */
function isDenial({ code, status }: ApiError, state: RequestState): boolean {
  if (code === 'policy_violation' || code === 'invalid_grant') return true;
  if (code === 'https_required' || code === 'foreign_host') return false;
  if (code === 'missing_or_invalid_token' && state.headers.authorization === undefined) return false;
  return status === 401 || status === 403;
}

/** Returns who sent a request: the kind of caller, the app, the user and the keys that signed. */
function actorOf(state: RequestState): AuditActor {
  const { app, userId, sessionId, headers, signers } = state;
  const who = {
    kind: kindOf(state),
    ...{ appId: app?.id, userId, sessionId },
    signers: signers === undefined || signers.size === 0 ? undefined : [...signers].map(fingerprintOf),
  };
  const claimed = headers['service-app-id'];
  const isClaim = app === undefined && typeof claimed === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(claimed);
  return isClaim ? { ...who, claimedAppId: claimed } : who;
}

function kindOf({ app, userId, publicClientNetwork, headers, route }: RequestState): AuditActor['kind'] {
  if (userId !== undefined) return 'user_token';
  const security = route?.operation.security;
  if (app === undefined || security === 'none' || publicClientNetwork !== undefined) return 'anonymous';
  if (security === 'oauth-client') return 'oauth_client';
  return headers.authorization === undefined ? 'web_page' : 'app_secret';
}

/** Returns the SHA-256 of the SubjectPublicKeyInfo, hex. */
function fingerprintOf(publicKey: string): string {
  return hash('sha256', Buffer.from(publicKey, 'base64'));
}

/** How a request ended. */
interface Outcome {
  readonly status: number;
  readonly decision: AuditRecord['decision'];
  readonly code?: string;
  /** The body of the response. */
  readonly body?: unknown;
}

export function requestRecord(
  state: RequestState,
  audit: Pick<AuditTrail, 'digest'>,
  { status, decision, code, body }: Outcome,
): AuditRecord {
  return {
    ...commonFieldsOf(state),
    appId: state.app?.id ?? null,
    request: audit.digest(state.method, state.target, state.rawBody),
    ids: idsOf(state, body),
    ...{ decision, status, code },
  };
}

/** Returns the fields that all audit records of a request share. */
function commonFieldsOf(state: RequestState): Pick<AuditRecord, 'atMs' | 'by' | 'operation' | 'requestId'> {
  return {
    atMs: state.nowMs,
    by: actorOf(state),
    operation: state.route?.operation.id ?? 'none',
    requestId: state.id,
  };
}

// The formats of our ids: cuid2 and cuid, with or without a prefix, UUIDs, and DIDs of users (see `makeIds`).
const ownId =
  /^(?:(?:[a-z]+_)*[a-z0-9]{24,25}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|did:[a-z][a-z0-9-]*:c[a-z0-9]{24})$/;

const ownName = /^[a-z][a-z0-9_]{0,63}$/;

/**
 * Returns the ids in a request and its response: path parameters, top-level `…_id` members of both bodies, and in the
 * response also `id`, the ids of items, and the ids of wrapped resources, such as `fiat_deposit_account`. Only values
 * in the format of our ids are taken, because any other value could be personal data.
 */
function idsOf({ route, body }: RequestState, response: unknown): Record<string, string | string[]> {
  const ids: Record<string, string | string[]> = {};
  let count = 0;
  const add = (name: string, value: unknown): void => {
    // In some operations, callers choose the names of the members.
    if (typeof value !== 'string' || !ownId.test(value) || !ownName.test(name) || count >= MAX_IDS) return;
    count += 1;
    ids[name] = value;
  };
  for (const given of [body, response]) {
    if (!isObject(given)) continue;
    for (const name in given) if (name.endsWith('_id')) add(name, given[name]);
  }
  const params = route?.params ?? {};
  for (const name in params) add(name, params[name]);
  if (isObject(response)) {
    add('id', response.id);
    const items: string[] = [];
    for (const name in response) {
      const value = response[name];
      if (Array.isArray(value)) addItems(items, value);
      else if (isObject(value)) add(`${name}_id`, value.id);
    }
    if (items.length > 0) ids.items = items;
  }
  return ids;
}

function addItems(ids: string[], items: readonly unknown[]): void {
  for (const item of items) {
    const id = isObject(item) ? idOfItem(item) : undefined;
    if (typeof id === 'string' && ownId.test(id) && ids.length < MAX_IDS) ids.push(id);
  }
}

function idOfItem(item: Record<string, unknown>): unknown {
  // Batch operations wrap each created resource.
  const { id } = isObject(item.result) ? item.result : isObject(item.wallet) ? item.wallet : item;
  return id;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Records a refusal before its response is sent, if it is a denial that has not been recorded yet. */
export type RecordDenial = (state: RequestState, error: unknown) => Promise<void>;

interface DenialOptions {
  readonly audit: AuditTrail;
  readonly openUnit: OpenUnit;
  readonly machine: Clock;
}

export function recordDenials({ audit, openUnit, machine }: DenialOptions): RecordDenial {
  const inUnit = inUnitOf(openUnit);
  const budget = createDenialBudget(machine);
  return async (state, error) => {
    if (!(error instanceof ApiError) || !isDenial(error, state) || state.isDenialRecorded === true) return;
    const record = denialRecord(state, audit, error);
    const isUnknown = record.by.kind === 'anonymous' || record.by.kind === 'web_page';
    if (isUnknown && !budget.take()) return;
    await budget.write((omitted) =>
      inUnit((em, notes) => audit.record({ em, notes }, { ...record, omitted }, { isLast: true })),
    );
  };
}

/** Records a denial in the transaction that also keeps some changes of the refused request. */
export async function recordDenialWithChanges(
  unit: UnitContext,
  state: RequestState,
  { audit, error }: { readonly audit: AuditTrail; readonly error: ApiError },
): Promise<void> {
  if (!isDenial(error, state)) return;
  await audit.record(unit, denialRecord(state, audit, error));
  state.isDenialRecorded = true;
}

function denialRecord(state: RequestState, audit: AuditTrail, { status, code }: ApiError) {
  return requestRecord(state, audit, { status, code, decision: 'deny' });
}

/** The audit log; undefined where requests are not recorded. */
interface Log {
  readonly audit: AuditTrail | undefined;
}

/**
 * Returns the last statement of a request's transaction, which writes its audit record; undefined for a request that is
 * not recorded.
 *
 * INVARIANT: every request that changes something or uses a key is recorded in the transaction of its change.
 */
export function lastRecord(
  state: RequestState,
  { audit, status, body }: Log & { readonly status: number; readonly body: unknown },
): Parameters<UnitOfWork['commit']>[0] {
  if (audit === undefined || !isRecorded(state)) return undefined;
  const record = requestRecord(state, audit, { status, body, decision: 'allow' });
  return (unit) => audit.record(unit, record, { isLast: true });
}

/** Commits the changes that a refused request keeps. */
export async function keepChanges(
  unit: UnitOfWork,
  state: RequestState,
  { audit, error }: Log & { readonly error: ApiError },
): Promise<void> {
  if (audit !== undefined) await recordDenialWithChanges(unit, state, { audit, error });
  await unit.commit();
}

/** Returns units of work for callbacks after the commit. Their changes are recorded as changes of the same request. */
export function afterCommitUnits(
  state: RequestState,
  openUnit: OpenUnit,
  audit: AuditTrail | undefined,
): OpenUnit {
  if (audit === undefined) return openUnit;
  return recordingChanges(openUnit, audit, () => ({ ...commonFieldsOf(state), phase: 'after_commit' }));
}

/** Records that a callback after the commit has refused the request. */
export async function recordLateRefusal(
  unit: UnitContext,
  state: RequestState,
  { audit, error: { status, code } }: Log & { readonly error: ApiError },
): Promise<void> {
  if (audit === undefined) return;
  const record = requestRecord(state, audit, { status, code, decision: 'allow' });
  await audit.record(unit, { ...record, phase: 'after_commit' });
}
