import type { ActionUnit, PolicyAction, PolicyFacts } from './action.ts';
import { type CompiledCondition, compileCondition, requireField } from './compile.ts';
import { atPointer, PolicyFormatError } from './policy-format-error.ts';
import type { ConditionInput, ResolvedField } from './source.ts';
import { readAs } from './values.ts';

/** A field as an aggregation names it. */
interface FieldInput {
  readonly field_source: string;
  readonly field: string;
  readonly abi?: readonly unknown[] | undefined;
}

/** An aggregation as the contract has it, as far as its meaning goes. */
export interface AggregationDefinition {
  readonly method: string;
  readonly metric: FieldInput;
  readonly conditions?: readonly ConditionInput[] | undefined;
  readonly group_by?: readonly FieldInput[] | undefined;
}

/** What one request adds to an aggregation, and in which group. */
export interface Contribution {
  readonly groupKey: string;
  /** Undefined when the action may have the metric or a field of the group, but it cannot be read. */
  readonly amount: bigint | undefined;
}

export interface CompiledAggregation {
  /** What the action would add, one entry a group; nothing when the method or the conditions do not fit. */
  contributions(action: PolicyAction, facts: PolicyFacts): readonly Contribution[];
}

function resolve(input: FieldInput, method: string): ResolvedField {
  if (input.field_source === 'reference') {
    throw new PolicyFormatError('/field_source', 'an aggregation cannot refer to another');
  }
  return requireField({ ...input, operator: 'eq', value: '' } as unknown as ConditionInput, method);
}

function atLeastZero(value: bigint): bigint {
  return value < 0n ? 0n : value;
}

/** A condition of an aggregation counts by itself: sets and totals, which may be gone, have no place in it. */
function compileOwnCondition(condition: ConditionInput, method: string): CompiledCondition {
  if (condition.field_source === 'reference') {
    throw new PolicyFormatError('/field_source', 'an aggregation cannot refer to another');
  }
  if (condition.operator === 'in_condition_set') {
    throw new PolicyFormatError('/operator', 'an aggregation cannot refer to a condition set');
  }
  return compileCondition(condition, method);
}

function meets(condition: CompiledCondition, unit: ActionUnit, facts: PolicyFacts): boolean {
  const observed = condition.observe(unit, facts);
  // What cannot be read is counted: a running total must not be passed by because it could not be understood.
  if (observed.state === 'unreadable') return true;
  return (
    observed.state === 'present' && observed.values.some((value) => condition.judge(value, facts) === true)
  );
}

/**
 * Gives an aggregation its meaning. Its metric must be a number; a metric that an action does not have counts 0, and
 * so does a negative one: nothing that is signed makes room for more. One that cannot be read makes the total
 * unreadable, and so does a group: what belongs to a group that is full must not count in another.
 * Throws PolicyFormatError naming what has no meaning.
 */
export function compileAggregation(input: AggregationDefinition): CompiledAggregation {
  const metric = atPointer('/metric', () => resolve(input.metric, input.method));
  if (metric.kind !== 'number')
    throw new PolicyFormatError('/metric/field', 'expected a field that is a number');
  const groups = (input.group_by ?? []).map((group, index) =>
    atPointer(`/group_by/${index}`, () => resolve(group, input.method)),
  );
  const conditions = (input.conditions ?? []).map((condition, index) =>
    atPointer(`/conditions/${index}`, () => compileOwnCondition(condition, input.method)),
  );
  return {
    contributions(action, facts) {
      if (action.method !== input.method) return [];
      return action.units
        .filter((unit) => conditions.every((condition) => meets(condition, unit, facts)))
        .map((unit) => {
          const observed = readAs('number', metric.read(unit, facts));
          const own = groups.map((group) => readAs(group.kind, group.read(unit, facts)));
          const groupKey = JSON.stringify(own.map((one) => (one.state === 'present' ? one.values : null)));
          if ([observed, ...own].some(({ state }) => state === 'unreadable')) {
            return { groupKey, amount: undefined };
          }
          const values = observed.state === 'present' ? observed.values : [];
          return { groupKey, amount: values.reduce((sum, value) => sum + atLeastZero(BigInt(value)), 0n) };
        });
    },
  };
}
