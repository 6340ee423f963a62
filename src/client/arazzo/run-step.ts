import { runInNewContext } from 'node:vm';
import { ConfigError } from '../../config.ts';
import { InvalidPathError } from '../../sandbox/payload-path.ts';
import { findOperation } from '../calls/find-operation.ts';
import type { ReceivedResponse, SandboxClient } from '../sandbox-client.ts';
import { parseCondition } from './condition.ts';
import type { ArazzoDocument, Criterion, Step, Workflow } from './document.ts';
import { asText, type Exchange, evaluate, NoValueError, type Scope } from './expression.ts';
import { operationIdOf } from './operation-of-step.ts';
import { requestOfStep, UnsendableError } from './request-of-step.ts';

/** What a step did. */
export interface StepResult {
  readonly operation: string;
  readonly exchange: Exchange | undefined;
  readonly requestId: string | null;
  /** Why it failed; none for a success. */
  readonly failures: readonly string[];
}

/** Sends the request of a step and judges the response. */
export async function sendStep(
  step: Step,
  scope: Scope,
  at: { readonly client: SandboxClient; readonly document: ArazzoDocument; readonly workflow: Workflow },
): Promise<StepResult> {
  const operation = findOperation(operationIdOf(step, at.document));
  const { parameters = [] } = at.workflow;
  let exchange: Exchange | undefined;
  let requestId: string | null = null;
  try {
    const { sent, seen } = requestOfStep(step, scope, { place: at.client.place(), operation, parameters });
    const received = await sendAnyway(at.client, sent);
    requestId = received === undefined ? null : String(received.headers['x-request-id'] ?? '') || null;
    exchange = { ...seen, status: received?.status ?? 0, response: messageOf(received) };
  } catch (error) {
    return { operation: operation.id, exchange, requestId, failures: [faultOf(error)] };
  }
  const failures = failuresOf(step.successCriteria, { ...scope, exchange });
  return { operation: operation.id, exchange, requestId, failures };
}

/** Undefined for a connection that was closed without a response, as fault rules do it. */
async function sendAnyway(
  client: SandboxClient,
  request: Parameters<SandboxClient['send']>[0],
): Promise<ReceivedResponse | undefined> {
  try {
    return await client.send(request);
  } catch {
    // Throws if the sandbox does not run at all.
    await client.call('GET', '/clock');
    return undefined;
  }
}

function messageOf(received: ReceivedResponse | undefined): Exchange['response'] {
  if (received === undefined) return { headers: {}, body: undefined };
  const { headers, text } = received;
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // A file, such as a statement as CSV.
  }
  return { headers, body };
}

/** Why a step could not be done. */
export function faultOf(error: unknown): string {
  if (error instanceof ConfigError) return error.faults.join('; ');
  const isExpected =
    error instanceof UnsendableError || error instanceof NoValueError || error instanceof InvalidPathError;
  if (isExpected) return error.message;
  throw error;
}

/**
 * The criteria that are not satisfied, with what was observed.
 *
 * CHOICE: a step without criteria succeeds with any 2xx status; Arazzo does not say.
 */
export function failuresOf(criteria: readonly Criterion[] | undefined, scope: Scope): string[] {
  const status = scope.exchange?.status ?? 200;
  if (criteria === undefined)
    return status >= 200 && status < 300 ? [] : [`expected a 2xx status, got ${status}`];
  return criteria.filter((criterion) => !isSatisfied(criterion, scope)).map((each) => failureOf(each, scope));
}

export function isSatisfied({ condition, context = '', type }: Criterion, scope: Scope): boolean {
  if (type !== 'regex') return parseCondition(condition).holds(scope);
  const value = evaluate(context, scope);
  return value !== undefined && matches(new RegExp(condition, 'u'), asText(value));
}

/** The scenario may come from elsewhere, and its pattern may take exponential time. */
function matches(pattern: RegExp, text: string): boolean {
  try {
    return runInNewContext('pattern.test(text)', { pattern, text }, { timeout: MAX_MATCH_MS }) as boolean;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new ConfigError('the document cannot be run', [
      `expected a criterion that is decided within ${MAX_MATCH_MS} ms, got \`${pattern.source}\``,
    ]);
  }
}

const MAX_SHOWN = 200;
const MAX_MATCH_MS = 1_000;

function failureOf({ condition, context = '', type }: Criterion, scope: Scope): string {
  const expressions = type === 'regex' ? [context] : parseCondition(condition).expressions;
  const observed = [...new Set(expressions)].map((expression) => {
    const value = evaluate(expression, scope);
    return `${expression} is ${value === undefined ? 'absent' : JSON.stringify(value).slice(0, MAX_SHOWN)}`;
  });
  return [`expected ${condition}`, ...observed].join(', ');
}
