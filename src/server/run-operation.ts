import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, isUnavailable } from '../errors.ts';
import { createPasses, type Pass, RunAgainError } from '../keys/passes.ts';
import { inSpan } from '../observability/spans.ts';
import type { AuditTrail, WriteFreeze } from '../ports/audit.ts';
import { type AfterCommitWork, type Planned, type Services, tryPlan } from '../ports/operation-context.ts';
import type {
  Idempotency,
  IdempotentRequest,
  SignedRequest,
  SingleUse,
  StoredResponse,
} from '../ports/requests.ts';
import { type Admission, type Permit, permitOf } from './admission.ts';
import {
  afterCommitUnits,
  keepChanges,
  lastRecord,
  recordDenialWithChanges,
  recordLateRefusal,
} from './audit.ts';
import type { Authenticate } from './authenticate.ts';
import { refusalBody } from './error-response.ts';
import { idempotentRequestOf, isStoredRefusal } from './idempotency.ts';
import { createKeyedMutex, type KeyedMutex } from './keyed-mutex.ts';
import {
  type AnyHandler,
  contextOf,
  emptyOutcome,
  handlersOf,
  type Input,
  planContextOf,
  type RunOutcome,
} from './operation-contexts.ts';
import { LARGE_BODY_BYTES, RequestAbortedError } from './read-body.ts';
import type { ReplicaReads } from './replica-reads.ts';
import { type Answer, type OperationHandlers, operationOf, type RequestState } from './request-state.ts';
import {
  inUnitOf,
  isCollision,
  type OpenUnit,
  requireReleased,
  type UnitOfWork,
  watching,
} from './unit-of-work.ts';
import type { CheckResponse } from './validation-issues.ts';

export interface RunOptions {
  readonly services: Services;
  readonly openUnit: OpenUnit;
  readonly idempotency: Idempotency;
  readonly singleUse: SingleUse;
  readonly check: CheckResponse;
  /** Serializes requests with the same name: of the wallet that signs, or of its totals. Default: a new one. */
  readonly mutex?: KeyedMutex | undefined;
  /** The audit log. Undefined if requests are not recorded in one. */
  readonly audit?: AuditTrail | undefined;
  /** Default: every request begins its unit of work immediately. */
  readonly admission?: Pick<Admission, 'begin' | 'beginSigning'> | undefined;
  /** Makes requests wait while the state of the server is replaced. Undefined where it never is. */
  readonly gate?: { enter(): Promise<boolean>; leave(): void } | undefined;
  /** Checks the credentials again after a request has waited at the gate. */
  readonly authenticate?: Authenticate | undefined;
  /** Refuses changes after a restore. Undefined if they are never refused. */
  readonly freeze?: WriteFreeze | undefined;
  /** The replica from which lists are read. Default: the same database as everything else. */
  readonly replica?: ReplicaReads | undefined;
  /** Whether the state of a request records what its units of work have stored. */
  readonly notesEffects?: boolean | undefined;
}

/** How many times a handler is run in total if its transaction collides with others. */
const MAX_ATTEMPTS = 3;

/** What the handler of a request needs. It is the same in every pass. */
interface RequestWork {
  readonly handler: AnyHandler;
  readonly permit: Permit;
  /** The request under its idempotency key. Undefined if it has none. */
  readonly idempotent: IdempotentRequest | undefined;
  /** Whether the app accepts the signed payloads only once. */
  readonly isSingleUse?: boolean;
  /** The result of the handler's `plan`. Undefined for a handler without one. */
  readonly planned: Planned<unknown> | undefined;
  /** Opens units of work on the primary or on the replica, and records what they store. */
  readonly openUnit: OpenUnit;
  readonly options: RunOptions;
}

interface PassWork extends RequestWork {
  readonly pass: Pass;
}

/** Returns the functions of `src/api` as openapi-backend calls them: each runs in a unit of work. */
export function bindHandlers(registry: object, options: RunOptions): OperationHandlers {
  const { mutex = createKeyedMutex() } = options;
  return Object.fromEntries(
    Object.entries(handlersOf(registry)).map(([id, handler]) => [
      id,
      runOperation.bind(undefined, { handler, mutex, options }),
    ]),
  );
}

interface BoundHandler {
  readonly handler: AnyHandler;
  readonly mutex: KeyedMutex;
  readonly options: RunOptions;
}

/**
 * Runs the handler of a valid request in one unit of work: a transaction for every method except GET, committed before
 * the response is sent. With an idempotency key, or if the app accepts signed payloads only once, the response is
 * stored in the same transaction.
 *
 * The handler runs again, in a new unit of work, in three cases: when `keys/passes.ts` has aborted a pass, when its
 * transaction collides with another one, and on the primary when the replica fails.
 */
async function runOperation(
  { handler, mutex, options }: BoundHandler,
  _context: unknown,
  state: RequestState,
): Promise<Answer> {
  const { services, gate, freeze, replica } = options;
  const wasHeld = await gate?.enter();
  const permit = permitOf(state, options.admission);
  const startPasses = () =>
    createPasses(services, { whileAsking: permit.whileAsking, acquireMutex: mutex.acquire });
  let passes = startPasses();
  let idempotent: IdempotentRequest | undefined;
  try {
    if (wasHeld === true) await options.authenticate?.(state); // The state that was checked may have been replaced.
    if (freeze?.reason() !== undefined) await requireReleased(state, freeze);
    idempotent = idempotentRequestOf(state);
    // Computing the canonical form of a large body takes long, so let other requests run first.
    if (idempotent !== undefined && state.rawBody.length > LARGE_BODY_BYTES) await nextTurn();
    const planned = await planOf(handler, state, options);
    const work = { handler, idempotent, planned, permit, options };
    const primary = notingEffects(state, options);
    let ofReplica = replica?.unitsFor(state);
    for (let attempt = 1; ; ) {
      const pass = passes.begin();
      const span = { name: 'unit of work', kind: 'internal', attributes: { attempt } } as const;
      try {
        return await inSpan(span, runOnce, state, { ...work, pass, openUnit: ofReplica ?? primary });
      } catch (error) {
        if (pass.mustRunAgain()) {
          await passes.makeCalls();
          continue;
        }
        // A replica also cancels queries that delay the replay of its log.
        const hasReplicaFailed = ofReplica !== undefined && (isUnavailable(error) || isCollision(error));
        if (!hasReplicaFailed && (attempt === MAX_ATTEMPTS || !isCollision(error))) throw error;
        if (!hasReplicaFailed) attempt += 1;
        ofReplica = undefined;
        passes.end();
        passes = startPasses();
      }
    }
  } finally {
    passes.end();
    if (idempotent !== undefined) options.idempotency.end(idempotent);
    replica?.noteChange(state);
    gate?.leave();
  }
}

/** Returns units of work that record in the state of the request what they have committed. */
function notingEffects(state: RequestState, { openUnit, notesEffects }: RunOptions): OpenUnit {
  if (notesEffects !== true || operationOf(state).method === 'GET') return openUnit;
  return watching(openUnit, {
    committed({ events, transactions, policies }) {
      state.effects = [...state.effects, { events, transactions, policies }];
    },
  });
}

/**
 * Runs the plan and keeps its error. The handler throws the error when it unwraps the plan, so a repeated request still
 * gets its stored response, and an unauthorized caller gets no error of the plan.
 */
async function planOf(
  { plan }: AnyHandler,
  state: RequestState,
  { openUnit, services }: RunOptions,
): Promise<Planned<unknown> | undefined> {
  if (plan === undefined) return undefined;
  return tryPlan(async () => {
    // Without a transaction, no connection is held between statements.
    const { em } = await openUnit(false);
    return plan(inputOf(state), planContextOf(em, state, services));
  });
}

function inputOf(state: RequestState): Input {
  return { path: state.route!.params, query: state.query, body: state.body };
}

interface EarlierRequest {
  /** The stored response to the earlier request. */
  readonly answer: StoredResponse | undefined;
  /** Whether the app accepts the signed payloads of this request only once. */
  readonly isSingleUse: boolean;
}

const noEarlierRequest: EarlierRequest = { answer: undefined, isSingleUse: false };

/**
 * Looks for the stored response to the same request, by its idempotency key and by its signed payloads. Ends the unit
 * of work if there is one, or if the look-up fails.
 */
async function findEarlier(
  unit: UnitOfWork,
  state: RequestState,
  { idempotent, options }: PassWork,
): Promise<EarlierRequest> {
  const hasSignatures = isSigned(state);
  if (idempotent === undefined && !hasSignatures) return noEarlierRequest;
  let isContinued = false;
  try {
    let answer = idempotent && (await options.idempotency.begin(unit.em, idempotent));
    let isSingleUse = false;
    if (answer === undefined && hasSignatures) {
      const { first, isRequired } = await options.singleUse.begin(unit, signedRequestOf(state));
      [answer, isSingleUse] = [first, isRequired];
    }
    isContinued = answer === undefined;
    return { answer, isSingleUse };
  } finally {
    if (!isContinued) await unit.rollback();
  }
}

function isSigned(state: RequestState): boolean {
  const { method, maxBodyBytes } = operationOf(state);
  // Operations with a larger body limit check no signatures, so their signatures do not count as used.
  return (
    method !== 'GET' &&
    maxBodyBytes === undefined &&
    state.app !== undefined &&
    state.proof!.signatures.length > 0
  );
}

function signedRequestOf({ app, proof }: RequestState): SignedRequest {
  return { appId: app!.id, proof: proof! };
}

/**
 * Opens the unit of work of a request, after waiting for its permit. The permit is returned when the unit ends.
 *
 * INVARIANT: nothing is committed for a client that has closed its connection. It may send the request again without
 * knowing that the first one succeeded.
 */
async function openFor(state: RequestState, { permit, openUnit }: PassWork): Promise<UnitOfWork> {
  await permit.take();
  try {
    requireClient(state);
    const unit = await openUnit(operationOf(state).method !== 'GET');
    unit.watches.push({ committing: () => requireClient(state), ended: permit.leave });
    return unit;
  } catch (error) {
    permit.leave();
    throw error;
  }
}

function requireClient({ response }: RequestState): void {
  const message = 'the client closed the connection before its request was executed; nothing was changed';
  if (response.destroyed) throw new RequestAbortedError(message);
}

/** Runs the handler once, and commits its changes. */
async function runOnce(state: RequestState, work: PassWork): Promise<Answer> {
  const { handler, options, pass, idempotent } = work;
  const unit = await openFor(state, work);
  const earlier = await findEarlier(unit, state, work);
  if (earlier.answer !== undefined) return repeat(earlier.answer);
  const { successStatus: status, fileType } = operationOf(state);
  const outcome = emptyOutcome();
  const run = { state, work: earlier.isSingleUse ? { ...work, isSingleUse: true } : work, outcome };
  let answer: Answer;
  try {
    const context = contextOf(unit, state, {
      services: options.services,
      ports: pass.portsFor(unit.em),
      inUnit: (inside) => inUnitOf(afterCommitUnits(state, work.openUnit, options.audit))(inside),
      outcome,
    });
    const body = await handler.run(inputOf(state), context, work.planned);
    if (pass.mustRunAgain()) throw new RunAgainError();
    options.check(state, status, body);
    answer = answerOf(status, body, fileType);
    if (idempotent !== undefined || earlier.isSingleUse) {
      const kept = { status, text: answer.text, signers: [...outcome.signers] };
      await keep(unit.em, run, { answer: kept, replaces: false });
    }
    await unit.commit(lastRecord(state, { audit: options.audit, status, body }));
    pass.hasCommitted();
  } catch (error) {
    throw await settleFailure(error, unit, run);
  }
  for (const callback of outcome.afterCommit) await runAfterCommit(callback, run);
  return answer;
}

/** Ends the unit of work of a failed request, and stores what is kept of a refusal. Returns the error to throw. */
async function settleFailure(
  error: unknown,
  unit: UnitOfWork,
  run: HandlerRun & { readonly work: PassWork },
): Promise<unknown> {
  const { state, work } = run;
  const isRefusal = error instanceof ApiError && !work.pass.mustRunAgain();
  try {
    if (isRefusal && error.keepsChanges) await keepChanges(unit, state, { audit: work.options.audit, error });
  } finally {
    // Roll back even after a failed commit: the rollback ends the transaction and returns the permit.
    await unit.rollback();
  }
  if (isRefusal && error.code !== 'internal_error') {
    work.options.check(state, error.status, refusalBody(error, state));
    await settleRefusal(error, run);
  }
  return error;
}

function answerOf(status: number, body: unknown, fileType: string | undefined): Answer {
  if (body === undefined) return { status };
  // In the API document, the schema of a file is a string.
  return fileType === undefined
    ? { status, text: JSON.stringify(body) }
    : { status, text: body as string, fileType };
}

/** One run of the handler for a request, and what it leaves behind. */
interface HandlerRun {
  readonly state: RequestState;
  readonly work: RequestWork;
  readonly outcome: RunOutcome;
}

/** Runs a callback after the commit. If it refuses, the refusal replaces the stored response. */
async function runAfterCommit(callback: AfterCommitWork, run: HandlerRun): Promise<void> {
  try {
    await callback();
  } catch (error) {
    await refuseAfterCommit(error, run);
  }
}

async function refuseAfterCommit(error: unknown, { state, work, outcome }: HandlerRun): Promise<never> {
  const { check, audit } = work.options;
  // Wrapped, so that a collision here does not run the handler again after its commit.
  if (!(error instanceof ApiError)) throw new Error('the work after the commit failed', { cause: error });
  check(state, error.status, refusalBody(error, state));
  const answer = refusalAnswer(error, outcome);
  await inUnitOf(work.openUnit)(async (em, notes) => {
    await keep(em, { state, work, outcome }, { answer, replaces: true });
    await recordLateRefusal({ em, notes }, state, { audit, error });
  });
  throw error;
}

/**
 * Stores the refusal under its idempotency key and runs the handler's callbacks for a refusal, in a new transaction.
 * INVARIANT: it also records the denial, so a crash never leaves its event or its stored response without the record.
 */
async function settleRefusal(error: ApiError, { state, work, outcome }: HandlerRun): Promise<void> {
  const { idempotency, audit } = work.options;
  const idempotent = isStoredRefusal(error) ? work.idempotent : undefined;
  if (idempotent === undefined && outcome.afterRefusal.length === 0) return;
  await inUnitOf(work.openUnit)(async (em, notes) => {
    if (idempotent !== undefined) await idempotency.keep(em, idempotent, refusalAnswer(error, outcome));
    for (const callback of outcome.afterRefusal) await callback(em, notes);
    if (audit !== undefined) await recordDenialWithChanges({ em, notes }, state, { audit, error });
  });
}

function refusalAnswer(error: ApiError, { signers }: RunOutcome): StoredResponse {
  return { status: error.status, text: JSON.stringify(error.toBody()), signers: [...signers] };
}

/** Stores the response to a request under its idempotency key and its signed payloads. */
async function keep(
  em: SqlEntityManager,
  { state, work, outcome }: HandlerRun,
  { answer, replaces }: { readonly answer: StoredResponse; readonly replaces: boolean },
): Promise<void> {
  const { idempotent, isSingleUse, options } = work;
  if (idempotent !== undefined) await options.idempotency.keep(em, idempotent, answer, { replaces });
  if (isSingleUse !== true || outcome.payloads.size === 0) return;
  const used = { payloads: [...outcome.payloads], answer };
  await options.singleUse[replaces ? 'replace' : 'keep'](em, signedRequestOf(state), used);
}

function repeat({ status, text }: StoredResponse): Answer {
  return { status, headers: { 'idempotent-replayed': 'true' }, ...(text === undefined ? {} : { text }) };
}
