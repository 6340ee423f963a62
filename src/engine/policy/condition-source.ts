import type { ActionUnit, PolicyFacts } from './action.ts';
import type { Operator } from './operators.ts';
import type { Observation, ValueKind } from './values.ts';

/** A condition in the format of the API. Properties that only some field sources have are optional. */
export interface ConditionInput {
  readonly field_source: string;
  readonly field: string;
  readonly operator: Operator;
  readonly value: string | readonly string[];
  readonly abi?: readonly unknown[] | undefined;
  readonly typed_data?: {
    readonly types: Readonly<Record<string, readonly { name: string; type: string }[]>>;
    readonly primary_type: string;
  };
}

/** The effect of a rule on the requests that it matches. */
export type RuleAction = 'ALLOW' | 'DENY';

/** A field of a field source, resolved when the policy is compiled. */
export interface ResolvedField {
  readonly kind: ValueKind;
  readonly operators?: readonly Operator[];
  /** The size of a `bytes1` … `bytes32` field; undefined for other types. */
  readonly sizeBytes?: number | undefined;
  /**
   * Returns the end of the message "expected …" if the field can never have this value, for example because of its
   * spelling.
   */
  readonly expectedInstead?: ((value: string) => string | undefined) | undefined;
  read(unit: ActionUnit, facts: PolicyFacts): Observation;
}

/** One `field_source`: the methods it applies to and its fields. */
export interface ConditionSource {
  /** The methods whose rules can use the source. Undefined means every method. */
  readonly methods: readonly string[] | undefined;
  /**
   * Returns the field, or undefined if the source has no such field.
   *
   * INVARIANT: the value that a field reads depends on the operator only by whether it is `neq`.
   *
   * @param action a field may read more for a DENY rule than for an ALLOW rule: see README, "DENY".
   * @throws PolicyFormatError for an invalid ABI or type map.
   */
  resolve(condition: ConditionInput, action: RuleAction): ResolvedField | undefined;
}

/**
 * Returns an `expectedInstead` that rejects a known name in another letter case. It accepts any other string: an
 * unknown name cannot be read, so a DENY with it matches.
 */
export function expectCaseOf(names: readonly string[]): NonNullable<ResolvedField['expectedInstead']> {
  const byLowerCase = new Map(names.map((name) => [name.toLowerCase(), name]));
  return (value) => {
    const name = byLowerCase.get(value.trim().toLowerCase());
    return name === undefined || name === value ? undefined : `\`${name}\``;
  };
}

/** Thrown when a policy, rule, condition or aggregation is invalid. `pointer` is relative to the compiled value. */
export class PolicyFormatError extends Error {
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.name = 'PolicyFormatError';
    this.pointer = pointer;
  }
}

/** Calls `compile` and prepends `prefix` to the pointer of a PolicyFormatError that it throws. */
export function atPointer<T>(prefix: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof PolicyFormatError)) throw error;
    throw new PolicyFormatError(prefix + error.pointer, error.message);
  }
}
