import type { ActionUnit, PolicyFacts } from './action.ts';
import type { Operator } from './operators.ts';
import type { Observation, ValueKind } from './values.ts';

/** A condition as the contract has it; fields that belong to one source are optional here. */
export interface ConditionInput {
  readonly field_source: string;
  readonly field: string;
  readonly operator: Operator;
  readonly value: string | readonly string[];
  readonly abi?: readonly unknown[];
  readonly typed_data?: {
    readonly types: Readonly<Record<string, readonly { name: string; type: string }[]>>;
    readonly primary_type: string;
  };
}

/** A field of a source, resolved when the policy is compiled: its kind, its operators, how to read it. */
export interface ResolvedField {
  readonly kind: ValueKind;
  readonly operators?: readonly Operator[];
  /** How many bytes every value of a `bytes1` … `bytes32` has. */
  readonly sizeBytes?: number | undefined;
  read(unit: ActionUnit, facts: PolicyFacts): Observation;
}

/** One `field_source`: the methods it can speak about, and its fields. */
export interface ConditionSource {
  /** Undefined: any method. */
  readonly methods: readonly string[] | undefined;
  /** Undefined when the source has no such field. Throws PolicyFormatError for a bad ABI or type map. */
  resolve(condition: ConditionInput): ResolvedField | undefined;
}
