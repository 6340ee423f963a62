import type { PolicyAction, PolicyFacts } from './action.ts';
import { type CompiledCondition, compileCondition, type FieldCache, requireField } from './compile.ts';
import { atPointer, type ConditionInput, PolicyFormatError, type ResolvedField } from './condition-source.ts';
import { createFieldReader, type ReadField } from './evaluate.ts';
import { readAs } from './values.ts';

interface FieldInput {
  readonly field_source: string;
  readonly field: string;
  readonly abi?: readonly unknown[] | undefined;
}

/** The fields of an API aggregation that determine what it sums. */
export interface AggregationDefinition {
  readonly method: string;
  readonly metric: FieldInput;
  readonly conditions?: readonly ConditionInput[] | undefined;
  readonly group_by?: readonly FieldInput[] | undefined;
}

/** The amount that one request adds to a group of an aggregation. */
export interface Contribution {
  readonly groupKey: string;
  /** What the action adds to the sum. Undefined if the metric or a group field cannot be read from the action. */
  readonly amount: bigint | undefined;
}

export interface CompiledAggregation {
  readonly method: string;
  /** The conditions of the aggregation. The caller uses them to bound the cost of evaluation. */
  readonly compared: readonly CompiledCondition[];
  /**
   * Returns the amounts that the action would add, one entry per matching unit. Returns an empty list if the method
   * or the conditions do not match.
   */
  contributions(action: PolicyAction, facts: PolicyFacts): readonly Contribution[];
}

function resolve(input: FieldInput, method: string): ResolvedField {
  if (input.field_source === 'reference') {
    throw new PolicyFormatError('/field_source', 'an aggregation cannot refer to another aggregation');
  }
  return requireField({ ...input, operator: 'eq', value: '' }, method, READ_AS);
}

/**
 * Aggregations read fields as DENY rules do: a transaction without a chain id is valid on every chain, and a contract
 * creation may pay any account, so neither may escape a total.
 */
const READ_AS = 'DENY';

function atLeastZero(value: bigint): bigint {
  return value < 0n ? 0n : value;
}

/**
 * Compiles a condition of an aggregation. It must not refer to condition sets or other aggregations, because these
 * could be deleted.
 */
function compileOwnCondition(
  condition: ConditionInput,
  method: string,
  cache: FieldCache,
): CompiledCondition {
  if (condition.field_source === 'reference') {
    throw new PolicyFormatError('/field_source', 'an aggregation cannot refer to another aggregation');
  }
  if (condition.operator === 'in_condition_set') {
    throw new PolicyFormatError('/operator', 'an aggregation cannot refer to a condition set');
  }
  return compileCondition(condition, { method, action: READ_AS }, cache);
}

function meets(condition: CompiledCondition, readField: ReadField, facts: PolicyFacts): boolean {
  const observed = readField(condition);
  // Unreadable fields count as matching, so that an undecodable request cannot bypass a running total.
  if (observed.state === 'unreadable') return true;
  return (
    observed.state === 'present' && observed.values.some((value) => condition.judge(value, facts) === true)
  );
}

/**
 * Compiles an aggregation. Its metric must be a number. A missing or negative metric counts as 0, so a request never
 * lowers the total. An unreadable metric or group field makes the total unreadable, so that a request cannot move
 * from a full group to another one.
 *
 * @throws PolicyFormatError with a pointer into the aggregation.
 */
export function compileAggregation(input: AggregationDefinition): CompiledAggregation {
  const metric = atPointer('/metric', () => resolve(input.metric, input.method));
  if (metric.kind !== 'number')
    throw new PolicyFormatError('/metric/field', 'expected a field that is a number');
  const groups = (input.group_by ?? []).map((group, index) =>
    atPointer(`/group_by/${index}`, () => resolve(group, input.method)),
  );
  const cache: FieldCache = new Map();
  const conditions = (input.conditions ?? []).map((condition, index) =>
    atPointer(`/conditions/${index}`, () => compileOwnCondition(condition, input.method, cache)),
  );
  return {
    method: input.method,
    compared: conditions,
    contributions(action, facts) {
      if (action.method !== input.method) return [];
      return action.units
        .filter((unit) => {
          const readField = createFieldReader(unit, facts);
          return conditions.every((condition) => meets(condition, readField, facts));
        })
        .map((unit) => {
          const observed = readAs('number', metric.read(unit, facts));
          const group = groups.map((field) => readAs(field.kind, field.read(unit, facts)));
          const groupKey = JSON.stringify(
            group.map((part) => (part.state === 'present' ? part.values : null)),
          );
          if ([observed, ...group].some(({ state }) => state === 'unreadable')) {
            return { groupKey, amount: undefined };
          }
          const values = observed.state === 'present' ? observed.values : [];
          return { groupKey, amount: values.reduce((sum, value) => sum + atLeastZero(BigInt(value)), 0n) };
        });
    },
  };
}
