import type { ActionUnit, PolicyAction, PolicyFacts } from './action.ts';
import type { CompiledCondition, CompiledPolicy } from './compile.ts';
import { createFieldReader, rulesFor } from './evaluate.ts';
import { workOfComparison } from './operators.ts';

/**
 * The maximum number of comparisons for evaluating one request under one policy: conditions × units × observed
 * values. Searching a string counts by the string's length, and so does searching an action for a value.
 *
 * CHOICE: this allows a batch of 35 calls under the largest policy, and one of 1,000 calls under 250 conditions. More
 * would block the event loop for too long.
 */
export const MAX_COMPARISONS = 250_000;

/**
 * A unit up to this size counts as one short value per condition. An exact count would require decoding every small
 * call.
 */
const SMALL_UNIT = { bytes: 512, commands: 64 };

/** Returns whether evaluating the action would take more than `MAX_COMPARISONS`. The order of rules does not matter. */
export function exceedsComparisonLimit(policy: CompiledPolicy, action: PolicyAction, nowMs: number): boolean {
  const conditions = rulesFor(policy, action).flatMap((rule) => rule.conditions);
  return exceedsWork(conditions, action.units, nowMs);
}

/** Returns whether comparing the fields of these units takes more than `MAX_COMPARISONS`. */
export function exceedsWork(
  conditions: readonly CompiledCondition[],
  units: readonly ActionUnit[],
  nowMs: number,
): boolean {
  let work = conditions.length * units.length;
  let lookedThrough = 0;
  const facts: PolicyFacts = {
    ...{ nowMs, inConditionSet: () => undefined, aggregation: () => undefined },
    lookedThrough: (parts) => {
      lookedThrough += parts;
    },
  };
  for (const unit of units.filter(mayTakeLong)) {
    const readField = createFieldReader(unit, facts);
    for (const condition of conditions) {
      // The limit is checked before each field, because reading all fields would itself exceed it.
      if (work > MAX_COMPARISONS) return true;
      lookedThrough = 0;
      const observed = readField(condition);
      const values = observed.state === 'present' ? observed.values : [];
      // Values that were only searched also count.
      work += Math.max(0, lookedThrough - values.length);
      for (const value of values) work += workOfComparison(condition.input.operator, value);
      if (values.length > 0) work -= 1;
    }
  }
  return work > MAX_COMPARISONS;
}

function mayTakeLong(unit: ActionUnit): boolean {
  const { ethereumCall, tronContract, typedData, suiCommands, messageBytes } = unit;
  const dataBytes = ethereumCall?.data ?? tronContract?.data ?? messageBytes;
  return (
    typedData !== undefined ||
    (dataBytes !== undefined && dataBytes.length > SMALL_UNIT.bytes) ||
    (suiCommands !== undefined && suiCommands.length > SMALL_UNIT.commands)
  );
}
