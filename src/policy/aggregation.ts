import type { ActionUnit, PolicyAction, PolicyFacts } from './action.ts';
import { type CompiledCondition, compileCondition } from './compile.ts';
import { conditionSources } from './conditions.ts';
import { PolicyFormatError } from './policy-format-error.ts';
import type { ConditionInput, ResolvedField } from './source.ts';

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
  readonly amount: bigint;
}

export interface CompiledAggregation {
  /** What the action would add, one entry a group; nothing when the method or the conditions do not fit. */
  contributions(action: PolicyAction, facts: PolicyFacts): readonly Contribution[];
  /** The group an action falls into, even where it adds nothing. */
  groupKeyOf(unit: ActionUnit, facts: PolicyFacts): string;
}

function resolve(input: FieldInput, method: string, pointer: string): ResolvedField {
  const source = Object.hasOwn(conditionSources, input.field_source)
    ? conditionSources[input.field_source]
    : undefined;
  if (source === undefined || input.field_source === 'reference') {
    throw new PolicyFormatError(`${pointer}/field_source`, `unknown field source \`${input.field_source}\``);
  }
  if (source.methods !== undefined && !source.methods.includes(method)) {
    throw new PolicyFormatError(
      `${pointer}/field_source`,
      `\`${input.field_source}\` does not fit the method \`${method}\``,
    );
  }
  const condition = { ...input, operator: 'eq', value: '' } as unknown as ConditionInput;
  const field = source.resolve(condition);
  if (field === undefined) {
    throw new PolicyFormatError(
      `${pointer}/field`,
      `\`${input.field}\` is not a field of \`${input.field_source}\``,
    );
  }
  return field;
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
 * Gives an aggregation its meaning. Its metric must be a number; a metric that an action does not have counts 0.
 * Throws PolicyFormatError naming what has no meaning.
 */
export function compileAggregation(input: AggregationDefinition): CompiledAggregation {
  const metric = resolve(input.metric, input.method, '/metric');
  if (metric.kind !== 'number')
    throw new PolicyFormatError('/metric/field', 'expected a field that is a number');
  const groups = (input.group_by ?? []).map((group, index) =>
    resolve(group, input.method, `/group_by/${index}`),
  );
  const conditions = (input.conditions ?? []).map((condition, index) => {
    try {
      return compileCondition(condition, input.method);
    } catch (error) {
      if (error instanceof PolicyFormatError) {
        throw new PolicyFormatError(`/conditions/${index}${error.pointer}`, error.message);
      }
      throw error;
    }
  });
  const groupKeyOf = (unit: ActionUnit, facts: PolicyFacts): string =>
    JSON.stringify(
      groups.map((group) => {
        const observed = group.read(unit, facts);
        return observed.state === 'present' ? observed.values : null;
      }),
    );
  return {
    groupKeyOf,
    contributions(action, facts) {
      if (action.method !== input.method) return [];
      return action.units
        .filter((unit) => conditions.every((condition) => meets(condition, unit, facts)))
        .map((unit) => {
          const observed = metric.read(unit, facts);
          const values = observed.state === 'present' ? observed.values : [];
          return {
            groupKey: groupKeyOf(unit, facts),
            amount: values.reduce((sum, value) => sum + BigInt(value), 0n),
          };
        });
    },
  };
}
