import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError } from '../errors.ts';
import { type Replay, runWithReplay, UnansweredCallError } from '../keys/replay.ts';
import { inSpan } from '../observability/spans.ts';
import type { AuditTrail, WriteFreeze } from '../ports/audit.ts';
import { type AfterCommitWork, keepPlan, type Planned, type Services } from '../ports/operation-context.ts';
import type { Idempotency, KeyUse, SignedRequest, SingleUse, StoredResponse } from '../ports/requests.ts';
import type { UnitContext } from '../ports/unit-notes.ts';
import { type Admission, type Permit, permitOf } from './admission.ts';
import {
  afterCommitUnits,
  keepChanges,
  lastRecord,
  recordDenialWithChanges,
  recordLateRefusal,
} from './audit.ts';
import { LARGE_BODY_BYTES } from './contract.ts';
import { refusalBody } from './error-response.ts';
import { type Answer, type HttpExchange, operationOf, type RunOperation } from './http-exchange.ts';
import { isStoredRefusal, keyUseOf } from './idempotency.ts';
import { createKeyedMutex, type KeyedMutex } from './keyed-mutex.ts';
import {
  type AnyHandler,
  contextOf,
  handlersOf,
  type Input,
  type Later,
  nothingLater,
  planContextOf,
} from './operation-contexts.ts';
import { RequestAbortedError } from './read-body.ts';
import type { ReplicaReads } from './replica-reads.ts';
import { requireReleased } from './request-proof.ts';
import {
  inUnitOf,
  isCollision,
  type OpenUnit,
  type UnitOfWork,
  type UnitWatch,
  watching,
} from './unit-of-work.ts';
import type { CheckResponse } from './validation-issues.ts';

export interface RunOptions {
  readonly services: Services;
  /** Handlers by operation: `registry` of `generated/`. */
  readonly registry: object;
  readonly openUnit: OpenUnit;
  readonly idempotency: Idempotency;
  readonly singleUse: SingleUse;
  readonly check: CheckResponse;
  /** Held by requests that sign with the same wallet, one at a time. Default: a new one. */
  readonly mutex?: KeyedMutex | undefined;
  /** Undefined where requests are not recorded in an audit log. */
  readonly audit?: AuditTrail | undefined;
  /** Without it, every request begins its unit of work immediately. */
  readonly admission?: Pick<Admission, 'begin' | 'beginSigning'> | undefined;
  /** Undefined where changes never wait. */
  readonly freeze?: WriteFreeze | undefined;
  /** Where lists are read; by default from the same database as everything else. */
  readonly replica?: ReplicaReads | undefined;
  /** Whether requests are recorded with what their units of work have stored. */
  readonly notesEffects?: boolean | undefined;
}

// How often a transaction runs in total, including its handler, if it collides with others.
const MAX_ATTEMPTS = 3;

/** What one request runs; the same at every attempt and in every replay. */
interface Work {
  readonly handler: AnyHandler;
  readonly permit: Permit;
  readonly use: KeyUse | undefined;
  /** The app accepts its signed payloads only once. */
  readonly isSingleUse?: boolean;
  /** Undefined for a handler without a plan. */
  readonly planned: Planned<unknown> | undefined;
  /** On the primary or on the replica, and noting what is stored. */
  readonly openUnit: OpenUnit;
  readonly options: RunOptions;
}

/** The work of one run. */
interface ReplayedWork extends Work {
  readonly replay: Replay;
}

/**
 * Runs the handler of a validated request in one unit of work: a transaction for every method except GET, committed
 * before the response is sent. With an idempotency key, the response is stored in the same transaction.
 */
export function createRunOperation(options: RunOptions): RunOperation {
  const handlers = handlersOf(options.registry);
  const { mutex = createKeyedMutex() } = options;
  return async (exchange) => {
    if (options.freeze?.reason() !== undefined) await requireReleased(exchange, options.freeze);
    const use = keyUseOf(exchange);
    // Computing the canonical form of a large body takes long, so other requests get a turn first.
    if (use !== undefined && exchange.rawBody.length > LARGE_BODY_BYTES) await nextTurn();
    const handler = handlers[operationOf(exchange).id]!;
    const planned = await planOf(handler, exchange, options);
    const permit = permitOf(exchange, options.admission);
    const primary = notingEffects(exchange, options);
    const runOn = (openUnit: OpenUnit): Promise<Answer> =>
      runWithReplay(
        options.services,
        (replay) => runOnce(exchange, { handler, use, planned, permit, openUnit, options, replay }),
        { whileAsking: permit.whileAsking, acquireMutex: mutex.acquire },
      );
    try {
      const answer = options.replica && (await options.replica.answer(exchange, runOn));
      if (answer !== undefined) return answer;
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await inSpan({ name: 'unit of work', kind: 'internal', attributes: { attempt } }, () =>
            runOn(primary),
          );
        } catch (error) {
          if (attempt === MAX_ATTEMPTS || !isCollision(error)) throw error;
        }
      }
    } finally {
      if (use !== undefined) options.idempotency.end(use);
      options.replica?.noteChange(exchange);
    }
  };
}

/** Units of work that note in the exchange what they have committed. */
function notingEffects(exchange: HttpExchange, { openUnit, notesEffects }: RunOptions): OpenUnit {
  if (notesEffects !== true || operationOf(exchange).method === 'GET') return openUnit;
  return watching(openUnit, {
    committed({ events, transactions, policies }) {
      exchange.effects = [...exchange.effects, { events, transactions, policies }];
    },
  });
}

/**
 * The handler throws the plan's error when it unwraps it: replays still get the stored response, and unauthorized
 * callers learn nothing.
 */
async function planOf(
  { plan }: AnyHandler,
  exchange: HttpExchange,
  { openUnit, services }: RunOptions,
): Promise<Planned<unknown> | undefined> {
  if (plan === undefined) return undefined;
  return keepPlan(async () => {
    // Without a transaction no connection is held between statements.
    const { em } = await openUnit(false);
    return plan(inputOf(exchange), planContextOf(em, exchange, services));
  });
}

function inputOf(exchange: HttpExchange): Input {
  return { path: exchange.route!.params, query: exchange.query, body: exchange.body };
}

async function runOnce(exchange: HttpExchange, work: ReplayedWork): Promise<Answer> {
  await work.permit.take();
  const unit = await openFor(exchange, work);
  let earlier: Earlier;
  try {
    earlier = await findEarlier(unit, exchange, work);
  } catch (error) {
    await unit.rollback();
    throw error;
  }
  const { answer, isSingleUse } = earlier;
  if (answer === undefined) return await runIn(unit, exchange, isSingleUse ? { ...work, isSingleUse } : work);
  await unit.rollback();
  return repeat(answer);
}

interface Earlier {
  /** The first response to the same request. */
  readonly answer: StoredResponse | undefined;
  /** Whether the app accepts the signed payloads of this request only once. */
  readonly isSingleUse: boolean;
}

/** Looks for the response to the same request, by its idempotency key and by its signed payloads. */
async function findEarlier(
  unit: UnitContext,
  exchange: HttpExchange,
  { use, options }: ReplayedWork,
): Promise<Earlier> {
  const kept = use === undefined ? undefined : await options.idempotency.begin(unit.em, use);
  if (kept !== undefined || !isSigned(exchange)) return { answer: kept, isSingleUse: false };
  const { first, isRequired } = await options.singleUse.begin(unit, signedRequestOf(exchange));
  return { answer: first, isSingleUse: isRequired };
}

function isSigned(exchange: HttpExchange): boolean {
  const { method, maxBodyBytes } = operationOf(exchange);
  // Operations with larger bodies than others check no signatures, so they use none.
  return (
    method !== 'GET' &&
    maxBodyBytes === undefined &&
    exchange.app !== undefined &&
    exchange.proof!.signatures.length > 0
  );
}

function signedRequestOf({ app, proof }: HttpExchange): SignedRequest {
  return { appId: app!.id, proof: proof! };
}

/**
 * Opens the unit of work of a request that has its permit, which it gives back as the unit ends.
 *
 * INVARIANT: nothing is committed for a client that has closed its connection: it may send the request again without
 * knowing that the first one succeeded.
 */
async function openFor(
  exchange: HttpExchange,
  { permit: { leave }, openUnit }: ReplayedWork,
): Promise<UnitOfWork> {
  const watch: UnitWatch = { committing: () => requireClient(exchange), ended: leave };
  try {
    requireClient(exchange);
    return await watching(openUnit, watch)(operationOf(exchange).method !== 'GET');
  } catch (error) {
    leave();
    throw error;
  }
}

function requireClient({ response }: HttpExchange): void {
  if (response.destroyed) {
    throw new RequestAbortedError(
      'the client closed the connection before its request was executed; nothing was changed',
    );
  }
}

async function runIn(unit: UnitOfWork, exchange: HttpExchange, work: ReplayedWork): Promise<Answer> {
  const { handler, planned, options } = work;
  const { successStatus: status, fileType } = operationOf(exchange);
  const later = nothingLater();
  const run = { work, later };
  let answer: Answer;
  try {
    const context = contextOf(unit, exchange, {
      services: options.services,
      ports: work.replay.portsFor(unit.em),
      inUnit: (inside) => inUnitOf(afterCommitUnits(exchange, work.openUnit, options.audit))(inside),
      later,
    });
    const body = await handler.run(inputOf(exchange), context, planned);
    if (work.replay.isUnanswered()) throw new UnansweredCallError();
    options.check(exchange, status, body);
    answer = answerOf(status, body, fileType);
    if (work.use !== undefined || work.isSingleUse === true) {
      const kept = { status, text: answer.text, signers: [...later.signers] };
      await keep(unit.em, exchange, { ...run, answer: kept, replaces: false });
    }
    await unit.commit(lastRecord(exchange, { audit: options.audit, status, body }));
    work.replay.hasCommitted();
  } catch (error) {
    throw await refused(error, exchange, { unit, run });
  }
  for (const callback of later.afterCommit) await runAfterCommit(callback, exchange, run);
  return answer;
}

/** Ends the unit of work of a request that has failed. Result: its error. */
async function refused(
  error: unknown,
  exchange: HttpExchange,
  { unit, run }: { readonly unit: UnitOfWork; readonly run: Run & { readonly work: ReplayedWork } },
): Promise<unknown> {
  const { replay, options } = run.work;
  const isRefusal = error instanceof ApiError && !replay.isUnanswered();
  try {
    if (isRefusal && error.keepsChanges) await keepChanges(unit, exchange, { audit: options.audit, error });
  } finally {
    // Also when the client is gone or the commit fails: it ends the transaction and leaves the admission.
    await unit.rollback();
  }
  if (isRefusal && error.code !== 'internal_error') {
    options.check(exchange, error.status, refusalBody(error, exchange));
    await settleRefusal(error, exchange, run);
  }
  return error;
}

function answerOf(status: number, body: unknown, fileType: string | undefined): Answer {
  if (body === undefined) return { status };
  // The contract's schema of a file is a string.
  return fileType === undefined
    ? { status, text: JSON.stringify(body) }
    : { status, text: body as string, fileType };
}

/** A request that was run, and what its handler has registered. */
interface Run {
  readonly work: Work;
  readonly later: Later;
}

/** Runs a callback for after the commit. If it refuses, the refusal replaces the stored response. */
async function runAfterCommit(callback: AfterCommitWork, exchange: HttpExchange, run: Run): Promise<void> {
  try {
    await callback();
  } catch (error) {
    await refuseAfterCommit(error, exchange, run);
  }
}

async function refuseAfterCommit(
  error: unknown,
  exchange: HttpExchange,
  { work, later }: Run,
): Promise<never> {
  const { check, audit } = work.options;
  // Wrapped, so that a collision here does not run the handler again after its commit.
  if (!(error instanceof ApiError)) throw new Error('the work after the commit failed', { cause: error });
  check(exchange, error.status, refusalBody(error, exchange));
  const answer = refusalAnswer(error, later);
  await inUnitOf(work.openUnit)(async (em, notes) => {
    await keep(em, exchange, { work, later, answer, replaces: true });
    await recordLateRefusal({ em, notes }, exchange, { audit, error });
  });
  throw error;
}

/**
 * Stores the refusal under its idempotency key and runs the handler's callbacks for a refusal. In a separate
 * transaction, because that of the handler has ended.
 *
 * INVARIANT: the record of a denial is in it, so a crash leaves neither its event nor its stored response without one.
 */
async function settleRefusal(error: ApiError, exchange: HttpExchange, { work, later }: Run): Promise<void> {
  const { idempotency, audit } = work.options;
  const use = isStoredRefusal(error) ? work.use : undefined;
  if (use === undefined && later.afterRefusal.length === 0) return;
  await inUnitOf(work.openUnit)(async (em, notes) => {
    if (use !== undefined) await idempotency.keep(em, use, refusalAnswer(error, later));
    for (const callback of later.afterRefusal) await callback(em, notes);
    if (audit !== undefined) await recordDenialWithChanges({ em, notes }, exchange, { audit, error });
  });
}

function refusalAnswer(error: ApiError, { signers }: Later): StoredResponse {
  return { status: error.status, text: JSON.stringify(error.toBody()), signers: [...signers] };
}

/** Stores the response to a request under its idempotency key and its signed payloads. */
async function keep(
  em: SqlEntityManager,
  exchange: HttpExchange,
  { work, later, answer, replaces }: Run & { answer: StoredResponse; replaces: boolean },
): Promise<void> {
  const { use, isSingleUse, options } = work;
  if (use !== undefined) await options.idempotency.keep(em, use, answer, { replaces });
  if (isSingleUse !== true || later.payloads.size === 0) return;
  const used = { payloads: [...later.payloads], answer };
  await options.singleUse[replaces ? 'replace' : 'keep'](em, signedRequestOf(exchange), used);
}

function repeat({ status, text }: StoredResponse): Answer {
  const headers = { 'idempotent-replayed': 'true' };
  return text === undefined ? { status, headers } : { status, text, headers };
}
