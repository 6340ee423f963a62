import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { ConfigError } from '../../../config/config.ts';
import { findOperation } from '../call-operation.ts';
import { InvalidConditionError, parseCondition } from './expression.ts';
import {
  any,
  type Check,
  count,
  list,
  mapOf,
  object,
  oneOf,
  operationIdOf,
  text,
} from './request-of-step.ts';

/**
 * The parts of an Arazzo 1.0 document that Custos uses. References to `components` have been replaced by their
 * targets.
 */
export interface ArazzoDocument {
  readonly arazzo: string;
  readonly info: { readonly title: string; readonly summary?: string };
  readonly sourceDescriptions: readonly {
    readonly name: string;
    readonly url: string;
    readonly type?: string;
  }[];
  readonly workflows: readonly Workflow[];
}

export interface Workflow {
  readonly workflowId: string;
  readonly summary?: string;
  readonly inputs?: InputSchema;
  readonly dependsOn?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly steps: readonly Step[];
  readonly successActions?: readonly Action[];
  readonly failureActions?: readonly Action[];
  readonly outputs?: Readonly<Record<string, string>>;
}

interface InputSchema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<
    Record<string, { readonly type?: string | readonly string[]; readonly default?: unknown }>
  >;
}

export interface Parameter {
  readonly name: string;
  readonly in?: 'path' | 'query' | 'header' | 'cookie';
  readonly value: unknown;
}

export interface Step {
  readonly stepId: string;
  readonly description?: string;
  readonly operationId?: string;
  readonly operationPath?: string;
  readonly workflowId?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly payload?: unknown;
    readonly replacements?: readonly { readonly target: string; readonly value: unknown }[];
  };
  readonly successCriteria?: readonly Criterion[];
  readonly onSuccess?: readonly Action[];
  readonly onFailure?: readonly Action[];
  readonly outputs?: Readonly<Record<string, string>>;
  /** An extension of Arazzo: the seeded users who sign the request. */
  readonly 'x-sign-as'?: readonly string[];
}

export interface Criterion {
  readonly condition: string;
  /** The expression of the value that a `regex` condition is matched against. */
  readonly context?: string;
  readonly type?: 'simple' | 'regex';
}

export interface Action {
  readonly name: string;
  readonly type: 'end' | 'goto' | 'retry';
  readonly stepId?: string;
  readonly workflowId?: string;
  /** In seconds. */
  readonly retryAfter?: number;
  readonly retryLimit?: number;
  readonly criteria?: readonly Criterion[];
}

const documented: Readonly<Record<string, Check>> = { summary: text, description: text };

const criterion = object({
  required: { condition: text },
  optional: { context: text, type: oneOf('simple', 'regex') },
});

function action(...types: readonly string[]): Check {
  return object({
    required: { name: text, type: oneOf(...types) },
    optional: {
      stepId: text,
      workflowId: text,
      retryAfter: count,
      retryLimit: count,
      criteria: list(criterion),
    },
  });
}

const parameter = object({
  required: { name: text, value: any },
  optional: { in: oneOf('path', 'query', 'header', 'cookie') },
});
const successAction = action('end', 'goto');
const failureAction = action('end', 'goto', 'retry');

const step = object({
  required: { stepId: text },
  optional: {
    ...documented,
    operationId: text,
    operationPath: text,
    workflowId: text,
    parameters: list(parameter),
    requestBody: object({
      required: {},
      optional: {
        contentType: oneOf('application/json'),
        payload: any,
        replacements: list(object({ required: { target: text, value: any } })),
      },
    }),
    successCriteria: list(criterion),
    onSuccess: list(successAction),
    onFailure: list(failureAction),
    outputs: mapOf(text),
    'x-sign-as': list(oneOf('alice', 'bob', 'carol')),
  },
});

const workflow = object({
  required: { workflowId: text, steps: list(step, 1) },
  optional: {
    ...documented,
    inputs: any,
    dependsOn: list(text),
    parameters: list(parameter),
    successActions: list(successAction),
    failureActions: list(failureAction),
    outputs: mapOf(text),
  },
});

const document = object({
  required: {
    arazzo: (value, at, report) => {
      if (!/^1\.0\.\d+$/.test(String(value))) report(`${at}: expected 1.0.x, got \`${String(value)}\``);
    },
    info: object({ required: { title: text, version: text }, optional: documented }),
    sourceDescriptions: list(
      object({
        required: { name: text, url: text },
        optional: { type: oneOf('openapi', 'arazzo') },
      }),
      1,
    ),
    workflows: list(workflow, 1),
  },
  optional: { components: any },
});

/** Lists everything in the value that does not follow Arazzo 1.0, or that Custos does not support. */
function faultsOfShape(value: unknown): string[] {
  const faults: string[] = [];
  document(value, '', (fault) => void faults.push(fault));
  return faults;
}

/**
 * Replaces two kinds of references by their targets: reusable objects such as `{reference:
 * $components.parameters.page, value: 2}`, and schemas of `inputs`.
 */
function withoutReferences(value: unknown, report: (fault: string) => void): unknown {
  const components = (value as { components?: unknown } | null)?.components;
  const found = (path: readonly string[]): unknown =>
    path.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], components);
  const resolve = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(resolve);
    if (typeof part !== 'object' || part === null) return part;
    const { reference, $ref, ...others } = part as Record<string, unknown>;
    const path =
      /^\$components\.(\w+)\.([\w.-]+)$/.exec(String(reference)) ??
      /^#\/components\/(inputs)\/([\w.-]+)$/.exec(String($ref));
    if (path === null)
      return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, resolve(each)]));
    const target = found(path.slice(1));
    if (target === undefined) report(`\`${reference ?? $ref}\` refers to nothing`);
    return { ...(target as object | undefined), ...others };
  };
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, name === 'workflows' ? resolve(part) : part]),
  );
}

/** The maximum size of a document. It is far more than anyone writes by hand. */
const MAX_BYTES = 1_000_000;

/**
 * Reads an Arazzo 1.0 document in YAML or JSON, and checks everything that can be checked before a request is sent:
 * operations, conditions, and the steps and workflows to which it refers.
 *
 * @throws ConfigError, which lists every problem.
 */
export function readArazzoFile(file: string): ArazzoDocument {
  let source: string;
  try {
    source = readFileSync(file, 'utf8');
  } catch {
    throw new ConfigError('invalid argument:', [`\`${file}\` cannot be read`]);
  }
  return readArazzo(source, file);
}

/**
 * Reads an Arazzo 1.0 document from its text, with the checks of `readArazzoFile`.
 *
 * @param file the name of the file in errors.
 * @throws ConfigError, which lists every problem.
 */
export function readArazzo(source: string, file: string): ArazzoDocument {
  const refuse = (faults: readonly string[]): never => {
    throw new ConfigError(`\`${file}\` is not an Arazzo document that can be run:`, faults);
  };
  if (source.length > MAX_BYTES) refuse([`expected at most ${MAX_BYTES} characters, got ${source.length}`]);
  const parsed = parseDocument(source, { prettyErrors: true });
  if (parsed.errors.length > 0) refuse(parsed.errors.map(({ message }) => message.split('\n')[0]!));
  const faults: string[] = [];
  const value = withoutReferences(parsed.toJS({ maxAliasCount: 100 }), (fault) => void faults.push(fault));
  faults.push(...faultsOfShape(value));
  if (faults.length > 0) refuse(faults);
  const document = value as ArazzoDocument;
  for (const workflow of document.workflows) faults.push(...faultsOfWorkflow(workflow, document));
  faults.push(
    ...repeated(
      document.workflows.map(({ workflowId }) => workflowId),
      'workflow',
    ),
  );
  if (faults.length > 0) refuse(faults);
  return document;
}

function faultsOfWorkflow(workflow: Workflow, document: ArazzoDocument): string[] {
  const { workflowId, steps, dependsOn = [], successActions = [], failureActions = [] } = workflow;
  const stepIds = steps.map(({ stepId }) => stepId);
  const workflowIds = document.workflows.map((each) => each.workflowId);
  const faultsOfAction = ({ name, stepId, workflowId: other, type, criteria = [] }: Action): string[] => [
    ...(type === 'goto' && stepId === undefined && other === undefined
      ? [`action ${name}: expected a \`stepId\` or a \`workflowId\` to go to`]
      : []),
    ...missing(stepId, stepIds, 'step'),
    ...missing(other, workflowIds, 'workflow'),
    ...criteria.flatMap(faultsOfCriterion),
  ];
  const faultsOfStep = (step: Step): string[] =>
    [
      ...faultsOfTarget(step, document),
      ...missing(step.workflowId, workflowIds, 'workflow'),
      ...(step.successCriteria ?? []).flatMap(faultsOfCriterion),
      ...[...(step.onSuccess ?? []), ...(step.onFailure ?? [])].flatMap(faultsOfAction),
    ].map((fault) => `${workflowId}, step ${step.stepId}: ${fault}`);
  return [
    ...repeated(stepIds, 'step').map((fault) => `${workflowId}: ${fault}`),
    ...dependsOn.flatMap((id) => missing(id, workflowIds, 'workflow')),
    ...[...successActions, ...failureActions].flatMap(faultsOfAction),
    ...steps.flatMap(faultsOfStep),
  ];
}

function faultsOfTarget(step: Step, document: ArazzoDocument): string[] {
  const { operationId, operationPath, workflowId, 'x-sign-as': signers = [] } = step;
  const given = [operationId, operationPath, workflowId].filter((target) => target !== undefined);
  if (given.length !== 1) return ['expected one of `operationId`, `operationPath` and `workflowId`'];
  if (workflowId !== undefined) return [];
  try {
    const operation = findOperation(operationIdOf(step, document));
    const cannotSign = signers.length > 0 && !operation.signed;
    return cannotSign ? [`\`${operation.id}\` does not accept authorization signatures`] : [];
  } catch (error) {
    if (error instanceof ConfigError) return [...error.faults];
    throw error;
  }
}

function faultsOfCriterion({ condition, type, context }: Criterion): string[] {
  try {
    if (type === 'regex') new RegExp(condition, 'u');
    else parseCondition(condition);
    return type === 'regex' && context === undefined ? [`\`${condition}\`: expected a \`context\``] : [];
  } catch (error) {
    if (!(error instanceof InvalidConditionError || error instanceof SyntaxError)) throw error;
    return [`\`${condition}\`: ${error.message}`];
  }
}

function missing(id: string | undefined, ids: readonly string[], what: string): string[] {
  return id === undefined || ids.includes(id) ? [] : [`no ${what} is called \`${id}\``];
}

function repeated(ids: readonly string[], what: string): string[] {
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  return [...new Set(twice)].map((id) => `more than one ${what} is called \`${id}\``);
}
