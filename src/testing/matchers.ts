import { responseValidators } from '../generated/response-validators.js';
import { createBrand } from '../server/brand.ts';
import type { EventFilter, OperationId, TestSandbox } from './testing.ts';

/** The result of a matcher for `expect.extend` in vitest, jest and Playwright. */
interface Verdict {
  readonly pass: boolean;
  message(): string;
}

/** A response of `attempt` or of `fetch`. */
type Received =
  | Response
  | {
      readonly operation?: string;
      readonly status: number;
      readonly data?: unknown;
      readonly error?: unknown;
    };

/** Matchers for `expect.extend(sandboxMatchers)`, for sandboxes without a prefix. */
export const sandboxMatchers = matchersFor('service');

/** Makes the matchers for sandboxes that were started with this prefix. */
export function matchersFor(prefix: string) {
  const brand = createBrand(prefix);
  return {
    /** Passes if the contract documents the response for the operation: its status, body and error code. */
    async toMatchContract(received: Received, operation?: string): Promise<Verdict> {
      const isFetched = isResponse(received);
      const id = operation ?? (isFetched ? undefined : received.operation);
      if (id === undefined)
        throw new Error('toMatchContract: expected the id of an operation for a Response');
      const validators = responseValidators[id as OperationId];
      if (validators === undefined) throw new Error(`toMatchContract: no operation is called \`${id}\``);
      const body = isFetched ? await bodyOf(received.clone()) : (received.data ?? received.error);
      const fault = faultOf(validators, received.status, brand === undefined ? body : brand.readBody(body));
      return {
        pass: fault === undefined,
        message: () =>
          fault === undefined
            ? `expected ${id} not to answer as its document says`
            : `${id} answered ${received.status} ${JSON.stringify(body)}: ${fault}`,
      };
    },
    /** Passes if the sandbox has recorded an event of the type. */
    async toHaveEvent(
      received: Pick<TestSandbox, 'events'>,
      type: string,
      where: NonNullable<EventFilter['where']> = {},
    ): Promise<Verdict> {
      const found = await received.events(type, { where });
      const others = found.length > 0 ? [] : await received.events(type);
      return {
        pass: found.length > 0,
        message: () =>
          found.length > 0
            ? `expected no event \`${type}\`, got ${found.map(({ id }) => id).join(', ')}`
            : `expected an event \`${type}\` with ${JSON.stringify(where)}, got ${nearMisses(others)}`,
      };
    },
  };
}

const SHOWN_EVENTS = 3;

/** Describes the latest events of the type that have other values. */
function nearMisses(others: readonly { readonly payload: unknown }[]): string {
  if (others.length === 0) return 'none of this type';
  const shown = others.slice(-SHOWN_EVENTS).map(({ payload }) => JSON.stringify(payload));
  return `${others.length} of this type with other values: ${shown.join(', ')}`;
}

/** `instanceof` does not work, because the `fetch` of every package has its own `Response`. */
function isResponse(received: Received): received is Response {
  return 'clone' in received && typeof received.clone === 'function';
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  if (text === '') return undefined;
  return response.headers.get('content-type')?.startsWith('application/json') === false
    ? text
    : JSON.parse(text);
}

function faultOf(
  validators: (typeof responseValidators)[OperationId],
  status: number,
  body: unknown,
): string | undefined {
  const validate = validators[status];
  if (validate === undefined) return 'the document has no such status';
  if (validate(body)) return undefined;
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('; ');
}
