import { setTimeout as wait } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { ConfigError } from '../../../config/config.ts';
import { InvalidPathError } from '../../../sandbox/events.ts';
import type { SandboxScenarioStep } from '../../../sandbox/generated/schemas.ts';
import { findOperation } from '../call-operation.ts';
import type { ReceivedResponse, SandboxClient } from '../sandbox-client.ts';
import type { Action, ArazzoDocument, Criterion, Step, Workflow } from './document.ts';
import {
  asText,
  type Exchange,
  evaluate,
  fill,
  NoValueError,
  parseCondition,
  type Scope,
} from './expression.ts';
import { operationIdOf, readInputs, requestOfStep, UnsendableError } from './request-of-step.ts';

/** The request and the response of a step, and why it failed. */
interface StepResult {
  readonly operation: string;
  readonly exchange: Exchange | undefined;
  readonly requestId: string | null;
  /** The reasons why the step failed. Empty for a success. */
  readonly failures: readonly string[];
}

/** Sends the request of a step and checks the response. */
async function sendStep(
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

/** Sends a request. Returns undefined if the connection was closed without a response, for example by a fault rule. */
async function sendAnyway(
  client: SandboxClient,
  request: Parameters<SandboxClient['send']>[0],
): Promise<ReceivedResponse | undefined> {
  try {
    return await client.send(request);
  } catch {
    // Throws if no sandbox is running.
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
    // The body is a file, such as a CSV statement.
  }
  return { headers, body };
}

/** Returns the reason why a step could not be run. */
function faultOf(error: unknown): string {
  if (error instanceof ConfigError) return error.faults.join('; ');
  const isExpected =
    error instanceof UnsendableError || error instanceof NoValueError || error instanceof InvalidPathError;
  if (isExpected) return error.message;
  throw error;
}

/**
 * Lists the criteria that are not satisfied, with the observed values.
 *
 * CHOICE: a step without criteria succeeds with any 2xx status. Arazzo does not define this.
 */
function failuresOf(criteria: readonly Criterion[] | undefined, scope: Scope): string[] {
  const status = scope.exchange?.status ?? 200;
  if (criteria === undefined)
    return status >= 200 && status < 300 ? [] : [`expected a 2xx status, got ${status}`];
  return criteria.filter((criterion) => !isSatisfied(criterion, scope)).map((each) => failureOf(each, scope));
}

function isSatisfied({ condition, context = '', type }: Criterion, scope: Scope): boolean {
  if (type !== 'regex') return parseCondition(condition).holds(scope);
  const value = evaluate(context, scope);
  return value !== undefined && matches(new RegExp(condition, 'u'), asText(value));
}

/**
 * Matches a pattern with a time limit. The document may come from someone else, and its pattern may take exponential
 * time.
 */
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

export interface PlayedStep extends SandboxScenarioStep {
  readonly workflow: string;
  readonly step: string;
  /** The criteria that were not satisfied, with the observed values. Empty for a success. */
  readonly failures: readonly string[];
  /** The sandbox's advice about an error response. */
  readonly hint: string | null;
}

/** The result of running a document. */
export interface PlayedDocument {
  readonly name: string;
  readonly succeeded: boolean;
  readonly steps: readonly PlayedStep[];
  /** The outputs of each workflow. */
  readonly outputs: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface RunOptions {
  readonly workflow?: string | undefined;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly onStep?: (step: PlayedStep) => void;
}

/** Returns whether a string is the name of a file. Names of scenarios contain neither dots nor slashes. */
export function isArazzoFile(text: string): boolean {
  return /[./\\]/.test(text);
}

/** The maximum number of steps in total, which ends a circular `goto`. */
const MAX_STEPS = 1000;
const MAX_DEPTH = 10;
/** CHOICE: a maximum for `retryAfter`. Arazzo sets none. */
const MAX_RETRY_AFTER_S = 30;

/** The state that all workflows of one execution share. */
interface Run {
  readonly client: SandboxClient;
  readonly document: ArazzoDocument;
  readonly onStep: (step: PlayedStep) => void;
  readonly steps: PlayedStep[];
  readonly done: Map<string, WorkflowResult>;
}

interface WorkflowResult {
  readonly succeeded: boolean;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly outputs: Readonly<Record<string, unknown>>;
}

/**
 * Runs the workflows of a document in a sandbox, each after the workflows it depends on.
 *
 * @throws ConfigError for inputs and workflows that the document does not have.
 * @throws SandboxUnavailableError
 */
export async function runDocument(
  client: SandboxClient,
  document: ArazzoDocument,
  { workflow: wanted, inputs = {}, onStep = () => undefined }: RunOptions = {},
): Promise<PlayedDocument> {
  const run: Run = { client, document, onStep, steps: [], done: new Map() };
  const workflows = inOrder(document, wanted);
  const given = readInputs(workflows, inputs);
  let succeeded = true;
  for (const workflow of workflows) {
    const isReady = (workflow.dependsOn ?? []).every((id) => run.done.get(id)?.succeeded === true);
    const result =
      isReady && (await runWorkflow(workflow, given.get(workflow.workflowId)!, { run, depth: 0 }));
    succeeded &&= result !== false && result.succeeded;
  }
  const outputs = Object.fromEntries(
    workflows.map(({ workflowId: id }) => [id, run.done.get(id)?.outputs ?? {}]),
  );
  return { name: document.info.title, succeeded, steps: run.steps, outputs };
}

/**
 * Returns the wanted workflow, or all workflows if none is wanted. Each comes after the workflows it depends on.
 *
 * @throws ConfigError for an unknown workflow, or a workflow that depends on itself.
 */
function inOrder({ workflows }: ArazzoDocument, wanted: string | undefined): Workflow[] {
  const ordered: Workflow[] = [];
  const add = (id: string, above: readonly string[]): void => {
    const found = workflows.find(({ workflowId }) => workflowId === id);
    if (found === undefined)
      throw new ConfigError('invalid option:', [
        `--workflow: expected ${workflows.map(({ workflowId }) => workflowId).join(' or ')}, got \`${id}\``,
      ]);
    if (above.includes(id)) throw new ConfigError('invalid workflows:', [`\`${id}\` depends on itself`]);
    if (ordered.includes(found)) return;
    for (const other of found.dependsOn ?? []) add(other, [...above, id]);
    ordered.push(found);
  };
  for (const id of wanted === undefined ? workflows.map(({ workflowId }) => workflowId) : [wanted])
    add(id, []);
  return ordered;
}

interface Place {
  readonly run: Run;
  readonly depth: number;
}

async function runWorkflow(
  workflow: Workflow,
  inputs: Readonly<Record<string, unknown>>,
  place: Place,
): Promise<WorkflowResult> {
  const { run, depth } = place;
  const outputsOfSteps = new Map<string, Readonly<Record<string, unknown>>>();
  const sources = Object.fromEntries(run.document.sourceDescriptions.map((each) => [each.name, each]));
  const scope: Scope = { inputs, steps: outputsOfSteps, workflows: run.done, sources };
  const state: WorkflowState = { workflow, scope, outputsOfSteps, retries: new Map() };
  let next: string | undefined = workflow.steps[0]?.stepId;
  let succeeded = depth < MAX_DEPTH;
  while (succeeded && next !== undefined) {
    const step = workflow.steps.find(({ stepId }) => stepId === next)!;
    if (run.steps.length >= MAX_STEPS) {
      note(run, { workflow, step }, unsent(`more than ${MAX_STEPS} steps were done`));
      succeeded = false;
      break;
    }
    const followed = await doStep(step, state, place);
    succeeded = followed.succeeded;
    next = followed.next;
  }
  const outputs = valuesOf(workflow.outputs, scope);
  const result = { succeeded, inputs, outputs };
  run.done.set(workflow.workflowId, result);
  return result;
}

interface WorkflowState {
  readonly workflow: Workflow;
  readonly scope: Scope;
  readonly outputsOfSteps: Map<string, Readonly<Record<string, unknown>>>;
  /** How many times each action has retried its step. */
  readonly retries: Map<string, number>;
}

interface Following {
  readonly succeeded: boolean;
  readonly next: string | undefined;
}

async function doStep(step: Step, state: WorkflowState, place: Place): Promise<Following> {
  const { workflow, scope, outputsOfSteps } = state;
  const { result, after } = await resultOf(step, state, place);
  note(place.run, { workflow, step }, result);
  outputsOfSteps.set(step.stepId, valuesOf(step.outputs, after));
  const hasFailed = result.failures.length > 0;
  const action = actionOf(step, { workflow, hasFailed, scope: after });
  const following = workflow.steps[workflow.steps.indexOf(step) + 1]?.stepId;
  if (action === undefined) return { succeeded: !hasFailed, next: hasFailed ? undefined : following };
  if (action.type === 'end') return { succeeded: !hasFailed, next: undefined };
  if (action.type === 'retry') {
    const key = `${step.stepId} ${action.name}`;
    const count = state.retries.get(key) ?? 0;
    if (count >= (action.retryLimit ?? 1)) return { succeeded: false, next: undefined };
    state.retries.set(key, count + 1);
    await wait(Math.min(action.retryAfter ?? 0, MAX_RETRY_AFTER_S) * 1000);
    const before = await runOther(action, scope, place);
    return before?.succeeded === false ? before : { succeeded: true, next: step.stepId };
  }
  return (await runOther(action, scope, place)) ?? { succeeded: true, next: action.stepId };
}

/** Runs the workflow that an action names. Returns undefined if it names none. */
async function runOther(
  { workflowId }: Action,
  { inputs }: Scope,
  { run, depth }: Place,
): Promise<Following | undefined> {
  const workflow = run.document.workflows.find((each) => each.workflowId === workflowId);
  if (workflow === undefined) return undefined;
  const { succeeded } = await runWorkflow(workflow, inputs, { run, depth: depth + 1 });
  return { succeeded, next: undefined };
}

/**
 * Sends the request of a step, or runs its workflow. `after` is the scope for expressions that are evaluated after
 * the step.
 */
async function resultOf(
  step: Step,
  { workflow, scope }: WorkflowState,
  { run, depth }: Place,
): Promise<{ result: StepResult; after: Scope }> {
  const { client, document } = run;
  const called = document.workflows.find(({ workflowId }) => workflowId === step.workflowId);
  if (called === undefined) {
    const result = await sendStep(step, scope, { client, document, workflow });
    return { result, after: { ...scope, exchange: result.exchange } };
  }
  let inputs: Readonly<Record<string, unknown>>;
  try {
    const given = (step.parameters ?? []).map(({ name, value }) => [name, fill(value, scope)]);
    inputs = readInputs([called], Object.fromEntries(given)).get(called.workflowId)!;
  } catch (error) {
    return { result: unsent(faultOf(error)), after: scope };
  }
  const { succeeded, outputs } = await runWorkflow(called, inputs, { run, depth: depth + 1 });
  const after = { ...scope, outputs };
  const failures = failuresOf(step.successCriteria ?? [], after);
  const all = succeeded ? failures : [`the workflow ${called.workflowId} failed`, ...failures];
  return { result: unsent(...all), after };
}

function unsent(...failures: readonly string[]): StepResult {
  return { operation: '', exchange: undefined, requestId: null, failures };
}

/**
 * Returns the first action whose criteria are satisfied. The step's actions take precedence over the workflow's.
 * Undefined if there is none.
 */
function actionOf(
  step: Step,
  { workflow, hasFailed, scope }: { workflow: Workflow; hasFailed: boolean; scope: Scope },
): Action | undefined {
  const own = (hasFailed ? step.onFailure : step.onSuccess) ?? [];
  const shared = (hasFailed ? workflow.failureActions : workflow.successActions) ?? [];
  const inherited = shared.filter(({ name }) => !own.some((each) => each.name === name));
  return [...own, ...inherited].find(({ criteria = [] }) =>
    criteria.every((criterion) => isSatisfied(criterion, scope)),
  );
}

function valuesOf(outputs: Readonly<Record<string, string>> = {}, scope: Scope): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, expression]) => [name, evaluate(expression, scope)]),
  );
}

function note(
  run: Run,
  { workflow, step }: { readonly workflow: Workflow; readonly step: Step },
  { operation, exchange, requestId, failures }: StepResult,
): void {
  const body = (exchange?.response.body ?? {}) as {
    code?: unknown;
    error?: unknown;
    data?: { hint?: unknown };
  };
  const status = exchange?.status ?? null;
  const isRefusal = status !== null && status >= 400;
  const played: PlayedStep = {
    workflow: workflow.workflowId,
    step: step.stepId,
    summary: step.description?.trim().split('\n')[0] ?? step.stepId,
    request_id: requestId,
    operation: operation === '' ? null : operation,
    status,
    code: isRefusal ? String(body.code ?? body.error) : null,
    failures,
    hint: isRefusal && typeof body.data?.hint === 'string' ? body.data.hint : null,
  };
  run.steps.push(played);
  run.onStep(played);
}
