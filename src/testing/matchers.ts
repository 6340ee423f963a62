import { isDeepStrictEqual } from 'node:util';
import { decimalText, fromRaw } from '../engine/assets/decimal.ts';
import type { PolicyDecision, UnitTrace } from '../engine/policy/evaluate.ts';
import { responseValidators } from '../generated/response-validators.js';
import type { ValidationError } from '../generated/validate-function.ts';
import { createBrand } from '../server/brand.ts';
import { jsonSchemaOf, operationsOf } from '../tools/contract/contract-document.ts';
import { type Difference, differencesFrom } from '../tools/contract/differences.ts';
import { contractDocument } from '../tools/coverage/report.ts';
import type { CallInput, EventFilter, OperationId, TestSandbox } from './testing.ts';
import { differs, nearMisses } from './types.ts';

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
      readonly inspectorUrl?: string;
    };

/**
 * The matchers as members of an assertion, for the types of a test runner. In vitest:
 * `declare module 'vitest' { interface Matchers<R, T> extends SandboxMatchers {} }`.
 */
export interface SandboxMatchers {
  toMatchContract(operation?: string): Promise<void>;
  toHaveEvent(type: string, where?: NonNullable<EventFilter['where']>): Promise<void>;
  toBeRefusedWith(
    code: string,
    data?: Readonly<Record<string, unknown>> & { readonly rule?: string },
  ): Promise<void>;
  toHaveBalance(
    walletId: string,
    amount: string,
    of?: { readonly chain?: string; readonly asset?: string },
  ): Promise<void>;
}

/** Matchers for `expect.extend(sandboxMatchers)`, for sandboxes without a prefix. */
export const sandboxMatchers = matchersFor('service');

/** Returns the matchers for sandboxes that were started with this prefix. */
export function matchersFor(prefix: string) {
  const brand = createBrand(prefix);
  return {
    /** Passes if the API document describes the response for the operation: its status, body and error code. */
    async toMatchContract(received: Received, operation?: string): Promise<Verdict> {
      const isFetched = isResponse(received);
      const id = operation ?? (isFetched ? undefined : received.operation);
      if (id === undefined)
        throw new Error('toMatchContract: expected the id of an operation for a Response');
      const validators = responseValidators[id as OperationId];
      if (validators === undefined) throw new Error(`toMatchContract: no operation is called \`${id}\``);
      const body = isFetched ? await bodyOf(received.clone()) : (received.data ?? received.error);
      const { status } = received;
      const neutral = brand === undefined ? body : brand.readBody(body);
      const validate = validators[status];
      const pass = validate?.(neutral) === true;
      const first = pass ? [] : (validate?.errors ?? []);
      return {
        pass,
        message() {
          if (pass) return `expected ${id} not to answer as its document says`;
          const answered = `${id} answered ${status} ${JSON.stringify(body)}`;
          if (validate === undefined) {
            const known = Object.keys(validators).join(', ');
            return `${answered}: the document has no such status, but ${known}${linkOf(received)}`;
          }
          const found = allDifferences(id, status, neutral, first);
          const lines = found.map(({ pointer, message }) => `\n  ${pointer || 'body'}: ${message}`);
          const places = found.length === 1 ? 'one place' : `${found.length} places`;
          return `${answered}, which differs from its document in ${places}:${lines.join('')}${linkOf(received)}`;
        },
      };
    },
    /** Passes if the sandbox has recorded an event of the type. */
    async toHaveEvent(
      received: Pick<TestSandbox, 'events'>,
      type: string,
      where: NonNullable<EventFilter['where']> = {},
    ): Promise<Verdict> {
      const found = await received.events(type, { where });
      const [others, all] =
        found.length > 0 ? [[], []] : await Promise.all([received.events(type), received.events()]);
      return {
        pass: found.length > 0,
        message: () =>
          found.length > 0
            ? `expected no event \`${type}\`, got ${found.map(({ id }) => id).join(', ')}`
            : `expected an event \`${type}\` with ${JSON.stringify(where)}, got ${nearMisses(others, { where, all })}`,
      };
    },
    /**
     * Passes if the response is an error with this code whose `data` has these members. For `policy_violation`,
     * `rule` is the name of a rule that denied the request, or of one that would have allowed it but did not match.
     */
    async toBeRefusedWith(
      received: Received,
      code: string,
      { rule, ...data }: Readonly<Record<string, unknown>> & { readonly rule?: string } = {},
    ): Promise<Verdict> {
      const body = isResponse(received) ? await bodyOf(received.clone()) : received.error;
      const refusal = (typeof body === 'object' && body !== null ? body : {}) as {
        readonly code?: unknown;
        readonly data?: Readonly<Record<string, unknown>>;
      };
      const differences = [
        ...(received.status >= 400 ? [] : [`status: expected a refusal, got ${received.status}`]),
        ...(refusal.code === code
          ? []
          : refusal.code === undefined
            ? [`code: expected \`${code}\`, got none, as for a 404; compare the status`]
            : [`code: expected \`${code}\`, got ${JSON.stringify(refusal.code)}`]),
        ...(rule === undefined || rulesIn(refusal.data).includes(rule)
          ? []
          : [`rule: expected \`${rule}\`, got ${JSON.stringify(rulesIn(refusal.data))}`]),
        ...Object.entries(data)
          .filter(([name, value]) => !isDeepStrictEqual(refusal.data?.[name], value))
          .map(([name, value]) => differs(`data.${name}`, value, refusal.data?.[name])),
      ];
      const pass = differences.length === 0;
      const link = linkOf(received);
      return {
        pass,
        message: () =>
          pass
            ? `expected no refusal \`${code}\`${link}`
            : `${differences.join('; ')}; the answer was ${received.status} ${JSON.stringify(body)}${link}`,
      };
    },
    /**
     * Passes if a wallet, given by its id, has this amount of an asset on a chain, in whole units:
     * `toHaveBalance('ext_wal_bob', '2.5')`.
     */
    async toHaveBalance(
      received: Pick<TestSandbox, 'call'>,
      walletId: string,
      amount: string,
      { chain = 'base', asset = 'eth' }: { readonly chain?: string; readonly asset?: string } = {},
    ): Promise<Verdict> {
      const { balances } = await received.call('getWalletBalance', {
        path: { wallet_id: walletId },
        query: { chain, asset } as NonNullable<CallInput<'getWalletBalance'>['query']>,
      });
      const held = balances.map(({ raw_value: raw, raw_value_decimals: decimals }) =>
        decimalText(fromRaw(BigInt(raw), decimals)),
      );
      const pass = held.includes(amount);
      return {
        pass,
        message: () =>
          `expected ${walletId} ${pass ? 'not ' : ''}to have ${amount} ${asset} on ${chain}, got ${held.join(', ') || 'none'}`,
      };
    },
  };
}

/** Returns the names of the rules in the decision that denied a request. */
function rulesIn(data: Readonly<Record<string, unknown>> = {}): string[] {
  const { units = [] } = (data.decision ?? {}) as Partial<PolicyDecision>;
  const isCause = ({ deciding_rule_id: decisive }: UnitTrace, id: string): boolean =>
    decisive === null || decisive === id;
  return units
    .filter(({ outcome }) => outcome !== 'allowed')
    .flatMap((unit) =>
      unit.rules.filter(({ rule_id: id }) => isCause(unit, id)).map(({ rule_name: name }) => name),
    );
}

/** Returns a line with the URL of the request's page in the inspector, or an empty string for a `fetch` response. */
function linkOf(received: Received): string {
  const url = isResponse(received) ? undefined : received.inspectorUrl;
  return url === undefined ? '' : `\n  ${url}`;
}

/**
 * Recognizes a response by its methods. `instanceof` does not work, because the `fetch` of each package has its own
 * `Response` class.
 */
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

/** Lists every difference of a body from the document. `first` are the errors at which the validator stopped. */
function allDifferences(
  id: string,
  status: number,
  body: unknown,
  first: readonly ValidationError[],
): readonly Difference[] {
  const document = contractDocument();
  const { operation } = operationsOf(document).find(({ operation: { operationId } }) => operationId === id)!;
  const schema = jsonSchemaOf(document, operation.responses[status]);
  const found = schema === undefined ? [] : differencesFrom(document, schema, body);
  const isFound = ({ instancePath }: ValidationError): boolean =>
    found.some(({ pointer }) => pointer === instancePath || pointer.startsWith(`${instancePath}/`));
  const others = first.filter((error) => !isFound(error));
  return [
    ...found,
    ...others.map(({ instancePath, message = 'is not valid' }) => ({ pointer: instancePath, message })),
  ];
}
