import { compareAnswers } from './compare-answers.ts';
import { decodeContent } from './decode-content.ts';
import type { Finding, SeenExchange } from './judge-exchange.ts';
import { defaultLimits, openUpstream, type Upstream } from './proxy.ts';

/** Repeats recorded requests on a sandbox, and reports where the sandbox's responses differ from the server's. */
export interface Comparison {
  add(exchange: SeenExchange, operation: string): void;
  /** Waits for the requests in the queue, at most `DRAIN_MS`. */
  close(): Promise<void>;
}

/** The maximum number of requests in the queue. Further requests are not compared. */
const MAX_QUEUED = 1_000;
const DRAIN_MS = 60_000;

/**
 * Compares the responses of a sandbox with the responses that a proxy received.
 *
 * INVARIANT: requests are sent one at a time, in the order in which the server responded to them, so that the sandbox
 * goes through the same states.
 */
export function startComparison(
  sandbox: Upstream,
  report: (findings: readonly Finding[], example: string, isOperation: false, isRequest: false) => void,
  maxQueued = MAX_QUEUED,
): Comparison {
  const upstream = openUpstream(sandbox);
  // The comparisons so far, which run one after the other.
  let last = Promise.resolve();
  let queued = 0;
  let isClosed = false;
  const tell = ({ method, target }: SeenExchange, findings: readonly Finding[]): void =>
    report(findings, `${method} ${target}`, false, false);
  const run = async (exchange: SeenExchange, operation: string): Promise<void> => {
    if (!isClosed) tell(exchange, await compare(exchange, operation, upstream));
    queued -= 1;
  };
  return {
    add(exchange, operation) {
      if (queued > maxQueued) {
        tell(exchange, [
          {
            rule: 'sandbox-skipped',
            severity: 'notice',
            place: operation,
            message: `not compared, because ${maxQueued} requests wait for the sandbox`,
          },
        ]);
        return;
      }
      queued += 1;
      last = last.then(() => run(exchange, operation));
    },
    async close() {
      const timeout = new AbortController();
      const limit = new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, DRAIN_MS);
        timeout.signal.addEventListener('abort', () => clearTimeout(timer));
      });
      await Promise.race([last, limit]);
      timeout.abort();
      isClosed = true;
      upstream.close();
    },
  };
}

async function compare(
  exchange: SeenExchange,
  operation: string,
  sandbox: ReturnType<typeof openUpstream>,
): Promise<Finding[]> {
  const { method, target, requestHeaders: headers, requestBody: body, status, responseBody } = exchange;
  const place = `${operation} ${status}`;
  try {
    const answer = await sandbox.request({ method, target, headers, body });
    const encoding = answer.headers['content-encoding'];
    const content = await decodeContent(answer.body, encoding, defaultLimits.decodedBytes);
    return compareAnswers(
      place,
      { status, body: parsedBody(responseBody) },
      { status: answer.status, body: parsedBody(content.body) },
    );
  } catch (error) {
    const message = `the sandbox did not answer: ${(error as Error).message}`;
    return [{ rule: 'sandbox-differs', severity: 'error', place, message }];
  }
}

/** Returns the parsed JSON, or the text. Undefined if the body is empty. */
export function parsedBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return body.length === 0 ? undefined : body.toString('utf8');
  }
}
