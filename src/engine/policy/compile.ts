import type { ActionUnit, PolicyFacts, SetCandidate } from './action.ts';
import {
  atPointer,
  type ConditionInput,
  type ConditionSource,
  PolicyFormatError,
  type ResolvedField,
  type RuleAction,
} from './condition-source.ts';
import { conditionSources } from './conditions.ts';
import { ruleMethodsOf } from './methods.ts';
import { holds, type Operator, operatorsOf, setCandidate } from './operators.ts';
import { type Observation, readAs, requireValue, type ValueKind } from './values.ts';

const MAX_IN_VALUES = 100;
const CONDITION_SET_ID = /^[0-9a-z]{24}$/;

/** A rule in the format of the API. */
export interface RuleInput {
  readonly id: string;
  readonly name: string;
  readonly method: string;
  readonly action: RuleAction;
  readonly conditions: readonly ConditionInput[];
}

/** A parsed and validated condition. Evaluating it needs no parsing. */
export interface CompiledCondition {
  readonly input: ConditionInput;
  readonly kind: ValueKind;
  /** See `ResolvedField`. Undefined for a condition on a condition set, whose items may change. */
  readonly expectedInstead: ResolvedField['expectedInstead'];
  /** Set when the operator is `in_condition_set`. */
  readonly conditionSetId: string | undefined;
  /**
   * Reads the field from a unit. Conditions on the same field of a policy share this function, and evaluation uses it
   * as a cache key.
   */
  readonly observe: (unit: ActionUnit, facts: PolicyFacts) => Observation;
  /** Evaluates one observed value. Returns undefined if the condition set was deleted. */
  judge(observed: string, facts: PolicyFacts): boolean | undefined;
  candidate(observed: string): SetCandidate;
}

type SetCondition = CompiledCondition & { readonly conditionSetId: string };

export interface CompiledRule {
  readonly id: string;
  readonly name: string;
  readonly method: string;
  readonly action: RuleAction;
  readonly conditions: readonly CompiledCondition[];
  readonly setConditions: readonly SetCondition[];
}

export interface CompiledPolicy {
  readonly id: string;
  readonly rules: readonly CompiledRule[];
}

function requireFieldValue({ kind, sizeBytes }: ResolvedField, text: string, pointer: string): string {
  const value = requireValue(kind, text, pointer);
  // CHOICE: a value of another size is rejected, because no `bytesN` value could equal it, so a DENY with it would
  // never match.
  if (sizeBytes !== undefined && value.length !== 2 + 2 * sizeBytes) {
    throw new PolicyFormatError(pointer, `expected ${sizeBytes} bytes of 0x hex, got \`${text}\``);
  }
  return value;
}

function requireValues(condition: ConditionInput, field: ResolvedField): readonly string[] {
  const { operator, value } = condition;
  if (operator === 'in') {
    if (typeof value === 'string')
      throw new PolicyFormatError('/value', 'expected an array of strings for the operator `in`');
    if (value.length === 0 || value.length > MAX_IN_VALUES) {
      throw new PolicyFormatError('/value', `expected 1 to ${MAX_IN_VALUES} values, got ${value.length}`);
    }
    return value.map((item, index) => requireFieldValue(field, item, `/value/${index}`));
  }
  if (typeof value !== 'string')
    throw new PolicyFormatError('/value', `expected a string for the operator \`${operator}\``);
  return [requireFieldValue(field, value, '/value')];
}

function requireConditionSetId(value: ConditionInput['value']): string {
  if (typeof value !== 'string' || !CONDITION_SET_ID.test(value)) {
    throw new PolicyFormatError('/value', 'expected the id of a condition set');
  }
  return value;
}

function requireOperator(condition: ConditionInput, field: ResolvedField): Operator {
  const allowed = field.operators ?? operatorsOf(field.kind);
  if (!allowed.includes(condition.operator)) {
    throw new PolicyFormatError(
      '/operator',
      `\`${condition.operator}\` does not apply to the field \`${condition.field}\`; use one of ${allowed.join(', ')}`,
    );
  }
  return condition.operator;
}

/**
 * Finds the field of a condition.
 *
 * @throws PolicyFormatError if rules for `method` have no such field.
 */
export function requireField(condition: ConditionInput, method: string, action: RuleAction): ResolvedField {
  const source = requireSource(condition, method);
  const field = source.resolve(condition, action);
  if (field === undefined) {
    throw new PolicyFormatError(
      '/field',
      `\`${condition.field}\` is not a field of \`${condition.field_source}\``,
    );
  }
  return field;
}

function requireSource(condition: ConditionInput, method: string): ConditionSource {
  const source = Object.hasOwn(conditionSources, condition.field_source)
    ? conditionSources[condition.field_source]
    : undefined;
  if (source === undefined)
    throw new PolicyFormatError('/field_source', `unknown field source \`${condition.field_source}\``);
  if (method !== '*' && source.methods !== undefined && !source.methods.includes(method)) {
    throw new PolicyFormatError(
      '/field_source',
      `\`${condition.field_source}\` does not apply to the method \`${method}\``,
    );
  }
  return source;
}

type Observe = CompiledCondition['observe'];

/** The resolved fields of a policy. The keys contain everything on which the resolution depends. */
export type FieldCache = Map<string, { readonly field: ResolvedField; readonly observe: Observe }>;

/**
 * Resolves a field once for all conditions on it. They share `observe`, so evaluation reads the field once per unit.
 */
function resolveCached(condition: ConditionInput, method: string, action: RuleAction, cache: FieldCache) {
  const { field_source, field: name, operator, abi, typed_data } = condition;
  // The method is part of the key because not every field source applies to every method.
  const key = JSON.stringify([method, action, operator === 'neq', field_source, name, abi, typed_data]);
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const field = requireField(condition, method, action);
  const observe: Observe = (unit, facts) => readAs(field.kind, field.read(unit, facts));
  const resolved = { field, observe };
  cache.set(key, resolved);
  return resolved;
}

/** The method and the action of a condition's rule. */
export interface ConditionPlace {
  readonly method: string;
  readonly action: RuleAction;
}

/**
 * Compiles one condition of a rule.
 *
 * @throws PolicyFormatError with a pointer into the condition.
 */
export function compileCondition(
  condition: ConditionInput,
  { method, action }: ConditionPlace,
  cache: FieldCache = new Map(),
): CompiledCondition {
  const { field, observe } = resolveCached(condition, method, action, cache);
  const operator = requireOperator(condition, field);
  const base = {
    input: condition,
    kind: field.kind,
    expectedInstead: operator === 'in_condition_set' ? undefined : field.expectedInstead,
    observe,
    candidate: (observed: string) => setCandidate(field.kind, observed),
  };
  if (operator === 'in_condition_set') {
    const conditionSetId = requireConditionSetId(condition.value);
    return {
      ...base,
      conditionSetId,
      judge: (observed, facts) => facts.inConditionSet(conditionSetId, setCandidate(field.kind, observed)),
    };
  }
  const expected = requireValues(condition, field);
  return {
    ...base,
    conditionSetId: undefined,
    judge: judgeOf(operator, field.kind, expected),
  };
}

function judgeOf(
  operator: Exclude<Operator, 'in_condition_set'>,
  kind: ValueKind,
  expected: readonly string[],
): (observed: string) => boolean {
  // A decimal can be written in several ways. For all other kinds, equal values are equal strings once they are
  // normalized.
  if (operator !== 'in' || kind === 'decimal') return (observed) => holds(operator, kind, observed, expected);
  const texts = new Set(expected);
  return (observed) => texts.has(observed);
}

function usesConditionSet(condition: CompiledCondition): condition is SetCondition {
  return condition.conditionSetId !== undefined;
}

/**
 * Compiles one rule for a policy of `chainType`.
 *
 * @throws PolicyFormatError with a pointer into the rule.
 */
export function compileRule(rule: RuleInput, chainType: string, cache: FieldCache = new Map()): CompiledRule {
  const methods = ruleMethodsOf(chainType);
  if (!methods.includes(rule.method)) {
    throw new PolicyFormatError(
      '/method',
      `\`${rule.method}\` is not a rule method of \`${chainType}\`; use one of ${methods.join(', ')}`,
    );
  }
  const conditions = rule.conditions.map((condition, index) =>
    atPointer(`/conditions/${index}`, () => compileCondition(condition, rule, cache)),
  );
  return {
    id: rule.id,
    name: rule.name,
    method: rule.method,
    action: rule.action,
    conditions,
    setConditions: conditions.filter(usesConditionSet),
  };
}

/**
 * Rejects a rule with a value that its field can never have, because a DENY with it would never match. `compileRule`
 * accepts such values, because stored rules may contain them.
 *
 * @throws PolicyFormatError with a pointer into the rule.
 */
export function refuseUnseenValues({ conditions }: CompiledRule): void {
  for (const [index, { input, expectedInstead }] of conditions.entries()) {
    const isList = typeof input.value !== 'string';
    for (const [place, value] of [input.value].flat().entries()) {
      const expected = expectedInstead?.(value);
      if (expected === undefined) continue;
      const pointer = `/conditions/${index}/value${isList ? `/${place}` : ''}`;
      throw new PolicyFormatError(pointer, `expected ${expected}, got \`${value}\``);
    }
  }
}

/**
 * Compiles a whole policy.
 *
 * @throws PolicyFormatError with a pointer into the policy.
 */
export function compilePolicy(policy: {
  readonly id: string;
  readonly chain_type: string;
  readonly rules: readonly RuleInput[];
}): CompiledPolicy {
  const cache: FieldCache = new Map();
  return {
    id: policy.id,
    rules: policy.rules.map((rule, index) =>
      atPointer(`/rules/${index}`, () => compileRule(rule, policy.chain_type, cache)),
    ),
  };
}
