import { decodeContent, type Finding, type SeenExchange } from './judge-exchange.ts';
import { defaultLimits, openUpstream, type Upstream } from './proxy.ts';

/** The parts of a response that should be equal on two servers. Ids and times inside the body differ. */
interface ComparedAnswer {
  readonly status: number;
  /** The parsed body. */
  readonly body: unknown;
}

const MAX_DIFFERENCES = 20;
const MAX_DEPTH = 64;

/** Lists differences in status, error code and shape. The shape is the set of properties and their types. */
export function compareAnswers(place: string, target: ComparedAnswer, sandbox: ComparedAnswer): Finding[] {
  const differs = (message: string): Finding => ({
    rule: 'sandbox-differs',
    severity: 'error',
    place,
    message,
  });
  if (target.status !== sandbox.status) {
    return [differs(`the status is ${target.status}, in the sandbox ${sandbox.status}`)];
  }
  const [code, codeOfSandbox] = [codeOf(target), codeOf(sandbox)];
  if (code !== codeOfSandbox)
    return [differs(`the code is \`${code}\`, in the sandbox \`${codeOfSandbox}\``)];
  const [shape, shapeOfSandbox] = [shapeOf(target.body), shapeOf(sandbox.body)];
  const pointers = [...new Set([...shape.keys(), ...shapeOfSandbox.keys()])];
  return pointers
    .filter((pointer) => isComparable(pointer, shape) && isComparable(pointer, shapeOfSandbox))
    .filter((pointer) => !isAlike(shape.get(pointer), shapeOfSandbox.get(pointer)))
    .slice(0, MAX_DIFFERENCES)
    .map((pointer) =>
      differs(
        `${pointer || 'body'} is ${typesIn(shape.get(pointer))}, in the sandbox ${typesIn(shapeOfSandbox.get(pointer))}`,
      ),
    );
}

function codeOf({ body }: ComparedAnswer): string {
  return String((body as { code?: unknown } | null | undefined)?.code ?? 'none');
}

/** Returns the types at each JSON pointer. All items of a list share the pointer that ends in `/-`. */
function shapeOf(body: unknown): Map<string, Set<string>> {
  const shape = new Map<string, Set<string>>();
  const visit = (value: unknown, pointer: string, depth: number): void => {
    const type = value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value;
    shape.set(pointer, (shape.get(pointer) ?? new Set()).add(type));
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
    if (Array.isArray(value)) for (const item of value) visit(item, `${pointer}/-`, depth + 1);
    else for (const [name, inner] of Object.entries(value)) visit(inner, `${pointer}/${name}`, depth + 1);
  };
  visit(body, '', 0);
  // A sandbox adds these members to errors. The API document does not contain them.
  for (const pointer of shape.keys())
    if (pointer.startsWith('/data') && codeOf({ status: 0, body }) !== 'none') shape.delete(pointer);
  return shape;
}

/**
 * Returns whether both responses could have a value at a pointer. They cannot if it leads into null, an empty list or
 * a missing object.
 */
function isComparable(pointer: string, shape: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  if (shape.has(pointer)) return true;
  const end = pointer.lastIndexOf('/');
  const around = shape.get(pointer.slice(0, end));
  return around !== undefined && !around.has('null') && pointer.slice(end) !== '/-';
}

/**
 * Returns whether two sets of types are compatible. Null is compatible with every type, because the value may be
 * optional.
 */
function isAlike(one: ReadonlySet<string> | undefined, other: ReadonlySet<string> | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  if (one.has('null') || other.has('null')) return true;
  return one.size === other.size && [...one].every((type) => other.has(type));
}

function typesIn(types: ReadonlySet<string> | undefined): string {
  return types === undefined ? 'absent' : [...types].join(' or ');
}

/** Repeats recorded requests on a sandbox, and reports where its responses differ from the server's. */
interface Comparison {
  add(exchange: SeenExchange, operation: string): void;
  /** Waits for the queued requests, at most `DRAIN_MS`. */
  close(): Promise<void>;
}

/** The maximum number of queued requests. Further requests are not compared. */
const MAX_QUEUED = 1_000;
const DRAIN_MS = 60_000;

/**
 * Compares the responses of a sandbox with the responses that a proxy received.
 *
 * INVARIANT: requests are sent one at a time, in the order in which the server responded to them, so that the sandbox
 * goes through the same states as the server.
 */
export function startComparison(
  sandbox: Upstream,
  report: (findings: readonly Finding[], example: string, isOperation: false, isRequest: false) => void,
  maxQueued = MAX_QUEUED,
): Comparison {
  const upstream = openUpstream(sandbox);
  // Each comparison starts after the previous one.
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

/** Returns the parsed JSON, or the text if it is not JSON. Returns undefined if the body is empty. */
export function parsedBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return body.length === 0 ? undefined : body.toString('utf8');
  }
}
