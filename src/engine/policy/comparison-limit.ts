import type { ActionUnit, PolicyAction, PolicyFacts } from './action.ts';
import type { CompiledCondition, CompiledPolicy } from './compile.ts';
import { createFieldReader, rulesFor } from './evaluate.ts';
import type { Operator } from './operators.ts';
import type { Observation } from './values.ts';

/**
 * The most comparisons that evaluating one request under one policy may take: conditions × units × observed values. A
 * search in a text counts as many as its length asks for.
 * CHOICE: allows a batch of 35 calls under the largest policy and one of 1,000 calls under 250 conditions; more would
 * block the event loop for too long.
 */
export const MAX_COMPARISONS = 250_000;

/**
 * Units up to this size are assumed to have one value per condition: counting exactly would decode every small call.
 */
const SMALL_UNIT = { bytes: 512, commands: 64 };

/** How many characters are searched, or looked up in a condition set, in the time of a comparison. */
const CHARACTERS_AT_ONCE = 8;
const READ_WHOLE: ReadonlySet<string> = new Set<Operator>(['contains', 'in_condition_set']);

/** Whether evaluating the action would take more than `MAX_COMPARISONS`. The order of rules does not matter. */
export function exceedsComparisonLimit(policy: CompiledPolicy, action: PolicyAction, nowMs: number): boolean {
  const rules = rulesFor(policy, action);
  const count = rules.reduce((sum, rule) => sum + rule.conditions.length, 0);
  let comparisons = count * action.units.length;
  if (comparisons > MAX_COMPARISONS) return true;
  const facts: PolicyFacts = { nowMs, inConditionSet: () => undefined, aggregation: () => undefined };
  for (const unit of action.units.filter(mayHaveManyValues)) {
    const readField = createFieldReader(unit, facts);
    for (const condition of rules.flatMap((rule) => rule.conditions)) {
      const observed = readField(condition);
      if (observed.state === 'present') comparisons += observed.values.length - 1;
      if (comparisons <= MAX_COMPARISONS) comparisons += searchesOf(condition, observed);
      // Checked inside the loop: reading the values of all conditions would itself exceed the limit.
      if (comparisons > MAX_COMPARISONS) return true;
    }
  }
  return false;
}

/** What a condition takes beyond one comparison for each observed value. */
function searchesOf({ input: { operator } }: CompiledCondition, observed: Observation): number {
  if (observed.state !== 'present' || !READ_WHOLE.has(operator)) return 0;
  return observed.values.reduce((sum, text) => sum + Math.floor(text.length / CHARACTERS_AT_ONCE), 0);
}

function mayHaveManyValues(unit: ActionUnit): boolean {
  const { ethereumCall, tronContract, typedData, suiCommands, messageBytes } = unit;
  const dataBytes = ethereumCall?.data ?? tronContract?.data ?? messageBytes;
  return (
    typedData !== undefined ||
    (dataBytes !== undefined && dataBytes.length > SMALL_UNIT.bytes) ||
    (suiCommands !== undefined && suiCommands.length > SMALL_UNIT.commands)
  );
}
