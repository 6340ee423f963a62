import {
  BrokenCircuitError,
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleType,
  type IPolicy,
  retry,
} from 'cockatiel';
import type { Log } from '../../ports/log.ts';
import { ChainUnavailableError } from '../chain-unavailable-error.ts';
import { callNode, nameOfNode } from './endpoint.ts';

const READ_TIMEOUT_MS = 5_000;
const SEND_TIMEOUT_MS = 10_000;
/** After this many consecutive failures, a node is not called for BREAK_MS. */
const FAILURES_UNTIL_BREAK = 5;
const BREAK_MS = 10_000;

/** The nodes of one chain, the preferred one first. */
export interface Nodes {
  /** Calls a read-only method; fails over to the next node and retries. Throws NodeError, ChainUnavailableError. */
  read(method: string, ...params: readonly unknown[]): Promise<unknown>;
  /** Calls a state-changing method; tries each node at most once. Throws NodeError, ChainUnavailableError. */
  send(method: string, ...params: readonly unknown[]): Promise<unknown>;
}

export interface NodesOptions {
  readonly caip2: string;
  readonly urls: readonly string[];
  readonly log: Log;
  /** Throws WrongChainError when the node belongs to another chain. Called once per node. */
  readonly checkChain: (ask: (method: string) => Promise<unknown>) => Promise<void>;
}

/** The node belongs to another chain than configured. */
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

/** Combines several nodes; available as long as one of them is. */
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

  return {
    read: (method, ...params) =>
      retries.execute(() => firstAnswer((node) => node.call(method, params, READ_TIMEOUT_MS))),
    // Safe to send to several nodes: the transaction is the same, and another node at most reports it as already known.
    send: (method, ...params) => firstAnswer((node) => node.call(method, params, SEND_TIMEOUT_MS)),
  };
}

function makeNode({ caip2, log, checkChain }: NodesOptions, url: string): Node {
  const name = nameOfNode(url);
  const breaker = circuitBreaker(handleType(ChainUnavailableError), {
    halfOpenAfter: BREAK_MS,
    breaker: new ConsecutiveBreaker(FAILURES_UNTIL_BREAK),
  });
  breaker.onBreak(() =>
    log.warn({ caip2, node: name }, 'a node does not respond and is skipped for a while'),
  );
  breaker.onReset(() => log.info({ caip2, node: name }, 'a node responds again'));
  const ask = (method: string, params: readonly unknown[], timeoutMs: number) =>
    guarded(breaker, name, () => callNode(url, { method, params, timeoutMs }));
  let checked: Promise<void> | undefined;
  return {
    name,
    async call(method, params, timeoutMs) {
      checked ??= checkChain((question) => ask(question, [], READ_TIMEOUT_MS)).catch((error: unknown) => {
        // After an outage the next call checks again; a wrong chain is final.
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
    throw new ChainUnavailableError(`${name}: skipped after repeated failures`, { cause: error });
  }
}
