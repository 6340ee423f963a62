import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { ConfigError } from '../../config.ts';
import { findOperation } from '../calls/find-operation.ts';
import { InvalidConditionError, parseCondition } from './condition.ts';
import {
  type Action,
  type ArazzoDocument,
  type Criterion,
  faultsOfShape,
  type Step,
  type Workflow,
  withoutReferences,
} from './document.ts';
import { operationIdOf } from './operation-of-step.ts';

/** Far more than anyone writes by hand. */
const MAX_BYTES = 1_000_000;

/**
 * Reads an Arazzo 1.0 document, YAML or JSON, and checks everything that can be checked before a request is sent:
 * operations, conditions, and the steps and workflows that are referred to.
 *
 * @throws ConfigError that lists every fault.
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

/** `file`: its name, for errors. @throws ConfigError that lists every fault. */
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
