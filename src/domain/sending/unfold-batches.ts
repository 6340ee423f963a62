import type { ActionUnit, PolicyAction } from '../../policy/action.ts';
import { decodeBatch, isBatchCall } from '../../signing/ethereum/batch-executor.ts';

const MAX_DEPTH = 8;

/**
 * An action in which every batch that the account runs on itself (ERC-7821) is followed by its calls, each of which
 * needs its own permission: otherwise a call to oneself would carry others past their rules.
 */
export function unfoldBatches(action: PolicyAction, address: string | undefined): PolicyAction {
  if (address === undefined) return action;
  return { ...action, units: action.units.flatMap((unit) => unfold(unit, address.toLowerCase(), MAX_DEPTH)) };
}

function unfold(unit: ActionUnit, address: string, depth: number): readonly ActionUnit[] {
  const call = unit.ethereumCall;
  if (call?.to?.toLowerCase() !== address || !isBatchCall(call.data)) return [unit];
  const calls = depth === 0 ? undefined : decodeBatch(call.data);
  if (calls === undefined) return [{ ...unit, undecodable: 'a batch of a form that is not known' }];
  const inner = calls.flatMap(({ to, value, data }, index) =>
    unfold(
      {
        ...unit,
        label: `${unit.label}, call ${index}`,
        // ERC-7821: address 0 stands for the account itself.
        ethereumCall: { ...call, to: /^0x0{40}$/.test(to) ? address : to, value, data },
      },
      address,
      depth - 1,
    ),
  );
  return [unit, ...inner];
}
