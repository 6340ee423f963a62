import { setTimeout } from 'node:timers/promises';
import {
  BrokenCircuitError,
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleType,
  type IPolicy,
  retry,
} from 'cockatiel';
import type { Log } from '../../ports/runtime.ts';
import { ChainUnavailableError, NodesDisagreeError } from '../outside-services.ts';
import { callNode, NodeError, nameOfNode } from './endpoint.ts';

const READ_TIMEOUT_MS = 5_000;
const SEND_TIMEOUT_MS = 10_000;
/** After this many consecutive failures, a node is not called for `BREAK_MS`. */
const FAILURES_UNTIL_BREAK = 5;
const BREAK_MS = 10_000;
/** Nodes may be a block or a message apart, so a disagreement is final only after this many comparisons. */
const COMPARISONS = 3;
const COMPARE_AGAIN_MS = 700;
/** The interval at which disagreements about transactions are logged, with their number. */
const REPORT_EVERY_MS = 60_000;

/**
 * Calls a read-only method.
 *
 * @throws NodeError, ChainUnavailableError
 */
export type Read = (method: string, ...params: readonly unknown[]) => Promise<unknown>;

/** A query whose result decides the cost or the meaning of a transaction. */
export interface Comparison<T> {
  /** The end of the message "the nodes disagree about …". */
  readonly what: string;
  readonly ask: (read: Read) => Promise<T>;
  /** Returns the common result of one or more results. Undefined when they have none. */
  readonly settle: (answers: readonly T[]) => { readonly answer: T } | undefined;
}

/** Calls the nodes of one chain. Reads try them in the configured order. */
export interface Nodes {
  /**
   * Calls a read-only method. If a node fails, it tries the next one and retries.
   *
   * @throws NodeError, ChainUnavailableError
   */
  readonly read: Read;
  /**
   * Queries all nodes and returns the result on which those that respond agree, so that no single node among several
   * decides it.
   *
   * @throws NodesDisagreeError, NodeError, ChainUnavailableError
   */
  compare<T>(comparison: Comparison<T>): Promise<T>;
  /**
   * Returns the results of all nodes that respond, at least one.
   *
   * @throws NodeError, ChainUnavailableError
   */
  readAll<T>(ask: Comparison<T>['ask']): Promise<readonly T[]>;
  /**
   * Sends signed bytes to one node after the other until a node accepts them or has them already.
   *
   * @throws ChainUnavailableError when no node has accepted them and one may have received them.
   */
  send(call: Sending): Promise<SendOutcome>;
  /** Logs that the nodes contradict each other about a transaction. */
  reportDisagreement(what: string): void;
}

interface Sending {
  readonly method: string;
  readonly params: readonly unknown[];
  /** Whether a refusal means that the node has the transaction already. */
  readonly isAlreadyKnown: (refusal: NodeError) => boolean;
}

/** The result of sending signed bytes to the nodes of a chain. */
type SendOutcome =
  | { readonly isAccepted: true }
  | {
      readonly isAccepted: false;
      /** The error of the first node that refused the bytes. */
      readonly refusal: NodeError;
      /** Whether every configured node has refused. */
      readonly isByAll: boolean;
    };

export interface NodesOptions {
  readonly caip2: string;
  readonly urls: readonly string[];
  readonly log: Log;
  /** The pause before nodes that disagree are queried again, in ms. The default is a little more than half a second. */
  readonly compareAgainMs?: number | undefined;
  /**
   * Checks that a node belongs to the chain. Called once per node.
   *
   * @throws WrongChainError when the node belongs to another chain.
   */
  readonly checkChain: (ask: (method: string) => Promise<unknown>) => Promise<void>;
  readonly observe?: ObserveNode | undefined;
  readonly observeDisagreement?: ObserveDisagreement | undefined;
}

/** Called after every call of a node. A refusal is a result, not a failure. */
export type ObserveNode = (caip2: string, durationMs: number, hasFailed: boolean) => void;

/** Called each time that nodes of a chain contradict each other. */
export type ObserveDisagreement = (caip2: string) => void;

/** Thrown when a node belongs to a chain other than the configured one. */
export class WrongChainError extends Error {
  constructor(caip2: string, found: string) {
    super(
      `expected a node of \`${caip2}\`, got one of \`${found}\`; correct the endpoint in the configuration`,
    );
    this.name = 'WrongChainError';
  }
}

interface Node {
  readonly name: string;
  call(method: string, params: readonly unknown[], timeoutMs: number): Promise<unknown>;
}

/** Combines several nodes. The chain is available as long as one of them is. */
export function makeNodes(options: NodesOptions): Nodes {
  const nodes = options.urls.map((url) => makeNode(options, url));
  const retries = retry(handleType(ChainUnavailableError), {
    maxAttempts: 2,
    backoff: new ExponentialBackoff({ initialDelay: 100, maxDelay: 1_000 }),
  });

  async function firstAnswer(ask: (node: Node) => Promise<unknown>): Promise<unknown> {
    let failure: unknown;
    for (const node of nodes) {
      try {
        return await ask(node);
      } catch (error) {
        if (!(error instanceof ChainUnavailableError)) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  async function compare<T>({ what, ask, settle }: Comparison<T>): Promise<T> {
    for (let asked = 0; asked < COMPARISONS; asked += 1) {
      if (asked > 0) await setTimeout(options.compareAgainMs ?? COMPARE_AGAIN_MS);
      const settled = settle(await retries.execute(() => allAnswers(nodes, ask)));
      if (settled !== undefined) return settled.answer;
    }
    options.observeDisagreement?.(options.caip2);
    options.log.error({ caip2: options.caip2 }, `the nodes disagree about ${what}`);
    throw new NodesDisagreeError(options.caip2, what);
  }

  let [reportedMs, unreported] = [Number.NEGATIVE_INFINITY, 0];
  return {
    read: (method, ...params) =>
      retries.execute(() => firstAnswer((node) => node.call(method, params, READ_TIMEOUT_MS))),
    compare,
    readAll: (ask) => retries.execute(() => allAnswers(nodes, ask)),
    send: (call) => sendTo(nodes, call),
    reportDisagreement(what) {
      options.observeDisagreement?.(options.caip2);
      unreported += 1;
      if (performance.now() - reportedMs < REPORT_EVERY_MS) return;
      const fields = { caip2: options.caip2, times: unreported };
      options.log.warn(fields, `the nodes disagree about ${what}; it stays pending until they agree`);
      [reportedMs, unreported] = [performance.now(), 0];
    },
  };
}

/**
 * Sends the bytes to the nodes. One node cannot decide alone that a transaction is refused, because it could forward
 * the bytes and report a refusal. Sending to several nodes is safe, because the transaction is the same.
 */
async function sendTo(
  nodes: readonly Node[],
  { method, params, isAlreadyKnown }: Sending,
): Promise<SendOutcome> {
  const refusals: NodeError[] = [];
  let missed: unknown;
  let mayHaveArrived: unknown;
  for (const node of nodes) {
    try {
      await node.call(method, params, SEND_TIMEOUT_MS);
      return { isAccepted: true };
    } catch (error) {
      if (error instanceof NodeError) {
        if (isAlreadyKnown(error)) return { isAccepted: true };
        refusals.push(error);
      } else if (error instanceof ChainUnavailableError) {
        missed ??= error;
        if (error.mayHaveArrived) mayHaveArrived ??= error;
      } else throw error;
    }
  }
  const [refusal] = refusals;
  if (refusal === undefined || mayHaveArrived !== undefined) throw mayHaveArrived ?? missed;
  return { isAccepted: false, refusal, isByAll: missed === undefined };
}

/**
 * Returns the results of all nodes that respond.
 *
 * CHOICE: a node that cannot be reached is left out. During an outage of one of two nodes, the other node is trusted
 * alone, within the ceilings. If all nodes had to respond, each provider could stop every transaction.
 */
async function allAnswers<T>(nodes: readonly Node[], ask: Comparison<T>['ask']): Promise<readonly T[]> {
  const outcomes = await Promise.allSettled(
    nodes.map((node) => ask((method, ...params) => node.call(method, params, READ_TIMEOUT_MS))),
  );
  const failures = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason);
  const refusal = failures.find((error) => !(error instanceof ChainUnavailableError));
  if (refusal !== undefined) throw refusal;
  const answers = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value);
  if (answers.length === 0) throw failures[0];
  return answers;
}

/** Returns a `settle` function that requires all results to have the same key. */
export function allEqual<T>(keyOf: (answer: T) => string): Comparison<T>['settle'] {
  return (answers) => {
    const [first] = answers;
    const isEqual = new Set(answers.map(keyOf)).size === 1;
    return isEqual ? { answer: first as T } : undefined;
  };
}

function makeNode({ caip2, log, checkChain, observe }: NodesOptions, url: string): Node {
  const name = nameOfNode(url);
  const breaker = circuitBreaker(handleType(ChainUnavailableError), {
    halfOpenAfter: BREAK_MS,
    breaker: new ConsecutiveBreaker(FAILURES_UNTIL_BREAK),
  });
  breaker.onBreak(() => log.warn({ caip2, node: name }, 'node does not respond; skipping it for a while'));
  breaker.onReset(() => log.info({ caip2, node: name }, 'node responds again'));
  const call = async (method: string, params: readonly unknown[], timeoutMs: number): Promise<unknown> => {
    const startedMs = performance.now();
    let hasFailed = false;
    try {
      return await callNode(url, { method, params, timeoutMs });
    } catch (error) {
      hasFailed = error instanceof ChainUnavailableError;
      throw error;
    } finally {
      observe?.(caip2, performance.now() - startedMs, hasFailed);
    }
  };
  const ask = (method: string, params: readonly unknown[], timeoutMs: number) =>
    guarded(breaker, name, () => call(method, params, timeoutMs));
  let checked: Promise<void> | undefined;
  return {
    name,
    async call(method, params, timeoutMs) {
      checked ??= checkChain((question) => ask(question, [], READ_TIMEOUT_MS)).catch((error: unknown) => {
        // After an outage, the next call checks the chain again. A wrong chain is final.
        if (!(error instanceof WrongChainError)) checked = undefined;
        else log.error({ caip2, node: name }, error.message);
        throw error;
      });
      await checked;
      return ask(method, params, timeoutMs);
    },
  };
}

async function guarded<T>(breaker: IPolicy, name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await breaker.execute(work);
  } catch (error) {
    if (!(error instanceof BrokenCircuitError)) throw error;
    throw new ChainUnavailableError(`${name}: skipped after repeated failures`, {
      cause: error,
      mayHaveArrived: false,
    });
  }
}
