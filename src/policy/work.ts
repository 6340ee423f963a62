import type { ActionUnit, PolicyAction, PolicyFacts } from './action.ts';
import type { CompiledPolicy } from './compile.ts';
import { rulesFor, seeOnce } from './evaluate.ts';

/**
 * What judging one request under one policy may cost: conditions, times the units they are asked of, times the values
 * that they look at there. CHOICE: a batch of 35 calls fits under the largest policy, one of 1,000 under 250 conditions;
 * more would keep everybody else waiting.
 */
export const MAX_JUDGEMENTS = 250_000;

/** Bytes of a call, or commands of a transaction, up to which their values need not be counted: of the former there may be many. */
const FEW = { bytes: 512, commands: 64 };

/** Whether judging the action would cost more than `MAX_JUDGEMENTS`. Depends on the rules' order as little as the decision does. */
export function isTooMuchToJudge(policy: CompiledPolicy, action: PolicyAction, nowMs: number): boolean {
  const rules = rulesFor(policy, action.method);
  const count = rules.reduce((sum, rule) => sum + rule.conditions.length, 0);
  let judgements = count * action.units.length;
  if (judgements > MAX_JUDGEMENTS) return true;
  const facts: PolicyFacts = { nowMs, inConditionSet: () => undefined, aggregation: () => undefined };
  for (const unit of action.units.filter(mayHoldManyValues)) {
    const see = seeOnce(unit, facts);
    for (const condition of rules.flatMap((rule) => rule.conditions)) {
      const observed = see(condition);
      if (observed.state === 'present') judgements += observed.values.length - 1;
      // At once: to look at the values of all conditions would itself keep others waiting.
      if (judgements > MAX_JUDGEMENTS) return true;
    }
  }
  return false;
}

function mayHoldManyValues({ ethereumCall, tronContract, typedData, suiCommands }: ActionUnit): boolean {
  const dataBytes = ethereumCall?.data ?? tronContract?.data;
  return (
    typedData !== undefined ||
    (dataBytes !== undefined && dataBytes.length > FEW.bytes) ||
    (suiCommands !== undefined && suiCommands.length > FEW.commands)
  );
}
