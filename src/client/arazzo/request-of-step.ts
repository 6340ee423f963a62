import { parsePath, withValueAt } from '../../sandbox/payload-path.ts';
import { buildRequest, type CallHeaders } from '../calls/build-request.ts';
import { type CallableOperation, pathParametersOf } from '../calls/find-operation.ts';
import { seededKey } from '../calls/signing-keys.ts';
import type { SandboxPlace } from '../sandbox-address.ts';
import type { SentRequest } from '../sandbox-client.ts';
import type { Parameter, Step } from './document.ts';
import { asText, type Exchange, fill, type Scope } from './expression.ts';

/** The request of a step, and what expressions see of it. */
export interface StepRequest {
  readonly sent: SentRequest;
  readonly seen: Pick<Exchange, 'url' | 'method' | 'request'>;
}

/** A step cannot send its request. */
export class UnsendableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnsendableError';
  }
}

interface Sending {
  readonly place: SandboxPlace;
  readonly operation: CallableOperation;
  /** Of the workflow; a parameter of the step with the same name and place wins. */
  readonly parameters: readonly Parameter[];
}

/**
 * Builds the request of a step with the credentials of the sandbox and the signatures of `x-sign-as`.
 *
 * @throws UnsendableError, NoValueError, and ConfigError for headers that the operation does not accept.
 */
export function requestOfStep(
  step: Step,
  scope: Scope,
  { place, operation, parameters }: Sending,
): StepRequest {
  const values = readParameters([...parameters, ...(step.parameters ?? [])], scope);
  const path = Object.fromEntries(
    pathParametersOf(operation).map((name) => {
      const value = values.path.get(name);
      if (value === undefined) throw new UnsendableError(`the path parameter \`${name}\` has no value`);
      return [name, asText(value)];
    }),
  );
  const body = bodyOf(step, scope);
  const query = [...values.query].flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, asText(item)]),
  );
  const headers: CallHeaders = {
    signers: (step['x-sign-as'] ?? []).map((name) => seededKey(name)),
    ...headersOf(values.header, place.prefix),
  };
  const sent = buildRequest(place, operation, { input: { path, query, body }, headers });
  return {
    sent,
    seen: {
      url: new URL(sent.target, place.url).href,
      method: sent.method,
      request: { headers: sent.headers, body, path, query: Object.fromEntries(values.query) },
    },
  };
}

function readParameters(parameters: readonly Parameter[], scope: Scope) {
  const values = {
    path: new Map<string, unknown>(),
    query: new Map<string, unknown>(),
    header: new Map<string, unknown>(),
  };
  for (const { name, in: place, value } of parameters) {
    if (place !== 'path' && place !== 'query' && place !== 'header')
      throw new UnsendableError(`parameter \`${name}\`: expected \`in\` to be path, query or header`);
    values[place].set(place === 'header' ? name.toLowerCase() : name, fill(value, scope));
  }
  return values;
}

/** The idempotency key and the expiry are part of the signed payload. */
function headersOf(
  given: ReadonlyMap<string, unknown>,
  prefix: string,
): Pick<CallHeaders, 'idempotencyKey' | 'expiryMs' | 'others'> {
  const others = Object.fromEntries([...given].map(([name, value]) => [name, asText(value)]));
  const [keyName, expiryName] = [`${prefix}-idempotency-key`, `${prefix}-request-expiry`];
  const { [keyName]: idempotencyKey, [expiryName]: expiry, ...rest } = others;
  return { idempotencyKey, expiryMs: expiry === undefined ? undefined : Number(expiry), others: rest };
}

function bodyOf({ requestBody }: Step, scope: Scope): unknown {
  if (requestBody?.payload === undefined) return undefined;
  const filled = fill(requestBody.payload, scope);
  const isText = typeof requestBody.payload === 'string' && typeof filled === 'string';
  const start = isText ? parseJson(filled) : filled;
  return (requestBody.replacements ?? []).reduce<unknown>(
    (body, { target, value }) => withValueAt(body, parsePath(target), fill(value, scope)),
    start,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnsendableError(`expected JSON as the payload: ${(error as Error).message}`);
  }
}
