import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Pass } from '../keys/passes.ts';
import type {
  AfterCommitWork,
  OperationContext,
  PlanContext,
  Planned,
  Services,
  UnitWork,
} from '../ports/operation-context.ts';
import type { RequestState } from './request-state.ts';
import type { UnitOfWork } from './unit-of-work.ts';

/**
 * What one run of a handler leaves behind: callbacks for after its transaction, and the signatures that it has
 * verified.
 */
export interface RunOutcome {
  readonly afterCommit: AfterCommitWork[];
  readonly afterRefusal: RefusalWork[];
  /** The public keys whose signatures authorized the request. */
  signers: ReadonlySet<string>;
  /** The canonical payloads that these signatures cover. */
  payloads: ReadonlySet<Uint8Array>;
}

const none: ReadonlySet<never> = new Set();

/** Returns the outcome at the beginning of a run. */
export function emptyOutcome(): RunOutcome {
  return { afterCommit: [], afterRefusal: [], signers: none, payloads: none };
}

type RefusalWork = UnitWork<void>;

export function planContextOf(em: SqlEntityManager, state: RequestState, services: Services): PlanContext {
  return {
    ...services,
    // INVARIANT: authentication has set the app, except for public operations, whose handlers cannot read it.
    app: state.app!,
    em,
    nowMs: state.nowMs,
    requestId: state.id,
    idempotencyKey: keyOf(state),
    proof: state.proof!,
  };
}

function keyOf({ headers, route }: RequestState): string | undefined {
  const key = route?.operation.idempotent === true ? headers['service-idempotency-key'] : undefined;
  return typeof key === 'string' ? key : undefined;
}

/** The parts of a context that are not in the state of the request. */
interface Given {
  readonly services: Services;
  readonly ports: ReturnType<Pass['portsFor']>;
  readonly inUnit: OperationContext['inUnit'];
  readonly outcome: RunOutcome;
}

/** Returns the context in which the handler of a request runs. */
export function contextOf(
  unit: UnitOfWork,
  state: RequestState,
  { services, ports, inUnit, outcome }: Given,
): OperationContext {
  const { keyStore, ids, entropy, acquireMutex } = ports;
  // HOT: copy the services once per request, here. A second copy takes as long as finding the operation.
  return {
    ...services,
    keyStore,
    ids,
    entropy,
    acquireMutex,
    app: state.app!,
    em: unit.em,
    notes: unit.notes,
    nowMs: state.nowMs,
    requestId: state.id,
    idempotencyKey: keyOf(state),
    proof: state.proof!,
    afterCommit: (callback) => void outcome.afterCommit.push(callback),
    afterRefusal: (callback) => void outcome.afterRefusal.push(callback),
    noteSignatures(publicKeys, payloads) {
      outcome.signers = new Set([...outcome.signers, ...publicKeys]);
      outcome.payloads = new Set([...outcome.payloads, ...payloads]);
      state.signers = outcome.signers;
    },
    inUnit,
  };
}

/** The validated input of a handler. */
export interface Input {
  readonly path: Record<string, string>;
  readonly query: Record<string, unknown>;
  readonly body: unknown;
}

type Run = (
  input: Input,
  context: OperationContext,
  planned: Planned<unknown> | undefined,
) => Promise<unknown>;

/** A handler as the server calls it. The compiler has checked its specific types in the generated registry. */
export interface AnyHandler {
  readonly plan?: (input: Input, context: PlanContext) => Promise<unknown>;
  readonly run: Run;
}

export function handlersOf(registry: object): Readonly<Record<string, AnyHandler>> {
  const handlers = Object.entries(registry as Record<string, Run | AnyHandler>);
  return Object.fromEntries(
    handlers.map(([id, handler]) => [id, typeof handler === 'function' ? { run: handler } : handler]),
  );
}
