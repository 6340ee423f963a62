import { ApiError } from '../errors.ts';
import type { OperationContext, Plan, Services } from '../operation-context.ts';
import { type Answer, type HttpExchange, operationOf, type RunOperation } from './http-exchange.ts';
import { type Idempotency, isKeptRefusal, type KeptAnswer, type KeyUse, keyUseOf } from './idempotency.ts';
import type { CheckResponse } from './response-check.ts';
import { inUnitOf, isCollision, type OpenUnit, type UnitOfWork } from './unit-of-work.ts';

interface Input {
  readonly path: Record<string, string>;
  readonly query: Record<string, unknown>;
  readonly body: unknown;
}

/** A handler without its types: each fits its own operation, as the compiler has checked in the registry. */
export type AnyHandler = (input: Input, context: OperationContext) => Promise<unknown>;

/**
 * Asks the world outside, chains above all, what the handler will need: no transaction has begun, so that a slow answer
 * holds up nobody. It only reads, and may run in vain: for a request that is a repetition, or of a stranger.
 */
export type AnyPreparation = (input: Input, context: OperationContext) => Promise<unknown>;

export interface RunOptions {
  readonly services: Services;
  /** Handlers by operation; `registry` of `generated/`. */
  readonly registry: object;
  /** Preparations by operation; most have none. */
  readonly preparations?: object;
  readonly openUnit: OpenUnit;
  readonly idempotency: Idempotency;
  readonly check: CheckResponse;
}

// A transaction that collides with another one is run again this often, handler included.
const MAX_ATTEMPTS = 3;

/**
 * Runs the handler of a validated request inside one unit of work: a transaction for every method but GET, committed
 * before the answer is sent. Under an idempotency key the answer is kept in that same transaction.
 */
export function createRunOperation(options: RunOptions): RunOperation {
  return async (exchange) => {
    const use = keyUseOf(exchange);
    const plan = await prepare(exchange, options);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await runOnce(exchange, use, plan, options);
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isCollision(error)) throw error;
      }
    }
  };
}

/** Its error is the handler's to throw: a repetition has its answer already, and a stranger is told of nothing. */
async function prepare(exchange: HttpExchange, options: RunOptions): Promise<Plan | undefined> {
  const preparations = (options.preparations ?? {}) as Record<string, AnyPreparation | undefined>;
  const preparation = preparations[operationOf(exchange).id];
  if (preparation === undefined) return undefined;
  const unit = await options.openUnit(false);
  try {
    return { value: await preparation(inputOf(exchange), contextOf(unit, exchange, { options })) };
  } catch (refusal) {
    return { refusal };
  } finally {
    await unit.rollback();
  }
}

function inputOf(exchange: HttpExchange): Input {
  return { path: exchange.route!.params, query: exchange.query, body: exchange.body };
}

async function runOnce(
  exchange: HttpExchange,
  use: KeyUse | undefined,
  plan: Plan | undefined,
  options: RunOptions,
): Promise<Answer> {
  const unit = await options.openUnit(exchange.method !== 'GET');
  if (use === undefined) return runIn(unit, exchange, { plan, options });
  let kept: KeptAnswer | undefined;
  try {
    kept = await options.idempotency.begin(unit.em, use);
  } catch (error) {
    await unit.rollback();
    throw error;
  }
  if (kept !== undefined) {
    await unit.rollback();
    return repeat(kept);
  }
  try {
    return await runIn(unit, exchange, { use, plan, options });
  } finally {
    options.idempotency.end(use);
  }
}

async function runIn(
  unit: UnitOfWork,
  exchange: HttpExchange,
  { use, plan, options }: { use?: KeyUse; plan: Plan | undefined; options: RunOptions },
): Promise<Answer> {
  const { id, successStatus: status } = operationOf(exchange);
  const handler = (options.registry as Record<string, AnyHandler>)[id]!;
  const afterCommit: (() => Promise<void>)[] = [];
  let answer: Answer;
  try {
    const body = await handler(inputOf(exchange), contextOf(unit, exchange, { plan, afterCommit, options }));
    options.check(exchange, status, body);
    answer = body === undefined ? { status } : { status, text: JSON.stringify(body) };
    if (use !== undefined) await options.idempotency.keep(unit.em, use, { status, text: answer.text });
    await unit.commit();
  } catch (error) {
    await unit.rollback();
    if (error instanceof ApiError && error.code !== 'internal_error') {
      options.check(exchange, error.status, error.toBody());
      await settleRefusal(isKeptRefusal(error) ? use : undefined, error, options, false);
    }
    throw error;
  }
  for (const work of afterCommit) await goOut(work, exchange, use, options);
  return answer;
}

/** What the handler left for after the commit; its refusal takes the place of the answer that was kept. */
async function goOut(
  work: () => Promise<void>,
  exchange: HttpExchange,
  use: KeyUse | undefined,
  options: RunOptions,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    // Wrapped, so that no collision in it runs the handler again: its work is committed.
    if (!(error instanceof ApiError)) throw new Error('what follows the commit failed', { cause: error });
    options.check(exchange, error.status, error.toBody());
    await settleRefusal(use, error, options, true);
    throw error;
  }
}

function contextOf(
  unit: UnitOfWork,
  exchange: HttpExchange,
  {
    plan,
    afterCommit = [],
    options,
  }: { plan?: Plan | undefined; afterCommit?: (() => Promise<void>)[]; options: RunOptions },
): OperationContext {
  return {
    ...options.services,
    app: exchange.app!,
    em: unit.em,
    nowMs: exchange.nowMs,
    requestId: exchange.id,
    proof: exchange.proof!,
    plan,
    afterCommit: (work) => void afterCommit.push(work),
    inUnit: inUnitOf(options.openUnit),
  };
}

/**
 * Keeps the answer under its key and records what the refusal leaves. In a transaction of its own: the one of the
 * work is undone, or done already.
 */
async function settleRefusal(
  use: KeyUse | undefined,
  error: ApiError,
  { openUnit, idempotency }: RunOptions,
  replaces: boolean,
): Promise<void> {
  if (use === undefined && error.afterwards === undefined) return;
  await inUnitOf(openUnit)(async (em) => {
    const answer = { status: error.status, text: JSON.stringify(error.toBody()) };
    if (use !== undefined) await idempotency.keep(em, use, answer, { replaces });
    await error.afterwards?.(em);
  });
}

function repeat({ status, text }: KeptAnswer): Answer {
  const headers = { 'idempotent-replayed': 'true' };
  return text === undefined ? { status, headers } : { status, text, headers };
}
