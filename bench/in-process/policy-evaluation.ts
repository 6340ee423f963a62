import { parseArgs } from 'node:util';
import { decodeRpcAction } from '../../src/engine/actions/decode-action.ts';
import { compilePolicy, type RuleInput } from '../../src/engine/policy/compile.ts';
import { allowsAction, collectLookups, evaluatePolicy } from '../../src/engine/policy/evaluate.ts';
import { largePolicy, transaction } from '../requests-judged.ts';

// The cost of evaluating a policy of twenty rules with ten conditions, without a server.

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
const rules = largePolicy.rules.map((rule, index) => ({
  ...rule,
  id: `rule${index}`,
})) as unknown as RuleInput[];
const text = JSON.stringify(rules);
const nowMs = Date.UTC(2026, 0, 1);
const facts = { nowMs, inConditionSet: () => undefined, aggregation: () => undefined };
const request = { method: 'eth_signTransaction', params: { transaction } };
const policy = compilePolicy({ id: 'bench', chain_type: 'ethereum', rules });
const action = () => decodeRpcAction(request as never);
const decoded = await action();

/** A new copy of the bytes, so that no cached decoding is reused. */
function freshAction(): typeof decoded {
  const units = decoded.units.map((unit) =>
    unit.ethereumCall === undefined
      ? unit
      : { ...unit, ethereumCall: { ...unit.ethereumCall, data: unit.ethereumCall.data.slice() } },
  );
  return { ...decoded, units };
}

const measures: Record<string, { count: number; run: () => unknown }> = {
  'decode the transaction': { count: 5000, run: action },
  'look for what to read first': { count: 5000, run: () => collectLookups(policy, freshAction(), nowMs) },
  'judge, without a trace': { count: 5000, run: () => allowsAction(policy, freshAction(), facts) },
  'evaluate, with the whole trace': { count: 2000, run: () => evaluatePolicy(policy, freshAction(), facts) },
  'parse the rules': { count: 500, run: () => JSON.parse(text) },
  'compile the rules': {
    count: 100,
    run: () => compilePolicy({ id: 'bench', chain_type: 'ethereum', rules }),
  },
};

if (!evaluatePolicy(policy, decoded, facts).allowed) throw new Error('the policy must allow the transaction');
const best: Record<string, number> = {};
for (let round = 0; round <= Number(values.rounds); round += 1) {
  for (const [name, { count, run }] of Object.entries(measures)) {
    const before = process.cpuUsage();
    for (let done = 0; done < count; done += 1) await run();
    const { user, system } = process.cpuUsage(before);
    // The first round is a warm-up.
    if (round > 0) best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, (user + system) / count);
  }
}
process.send?.({ microseconds: best, ruleBytes: Buffer.byteLength(text) });
process.disconnect?.();
