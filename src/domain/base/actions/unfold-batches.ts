import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { ActionUnit, PolicyAction } from '../../../policy/action.ts';
import { type BatchCall, decodeCanonicalBatch } from '../../../signing/ethereum/batch-executor.ts';
import {
  decodeBatchOfCalls,
  decodeUserOperationCalls,
} from '../../../signing/ethereum/user-operation-calls.ts';

const MAX_DEPTH = 8;

/**
 * An action in which every call that an account makes to itself is followed by the calls that it asks for, each of which
 * needs its own permission: otherwise a call to oneself would carry others past their rules. What else an account asks
 * of itself cannot be read, since whatever code it has answers: an account without any does nothing.
 *
 * @param address the account's; left out, no call is known as one to itself.
 */
export function unfoldBatches(action: PolicyAction, address: string | undefined): PolicyAction {
  if (address === undefined) return action;
  return { ...action, units: action.units.flatMap((unit) => unfold(unit, address.toLowerCase(), MAX_DEPTH)) };
}

/** The account that a request's calls come from: of a user operation its sender, else the wallet itself. */
export function callingAccount(request: WalletRpcRequest, address: string | undefined): string | undefined {
  return request.method === 'eth_signUserOperation' ? request.params.user_operation.sender : address;
}

function unfold(unit: ActionUnit, address: string, depth: number): readonly ActionUnit[] {
  const call = unit.ethereumCall;
  if (call?.to?.toLowerCase() !== address || call.data.length === 0) return [unit];
  const calls = depth === 0 ? undefined : callsIn(call.data, address);
  if (calls === undefined)
    return [{ ...unit, undecodable: 'a call of the account to itself, of unknown form' }];
  const inner = calls.flatMap((own, index) =>
    unfold(
      { ...unit, label: `${unit.label}, call ${index}`, ethereumCall: { ...call, ...own } },
      address,
      depth - 1,
    ),
  );
  return [unit, ...inner];
}

/**
 * What calldata asks an account to call, in the canonical encoding of the accounts that are known here: the executor of
 * batches, and the accounts that take user operations.
 */
function callsIn(data: Uint8Array, address: string): readonly BatchCall[] | undefined {
  const batch = decodeCanonicalBatch(data);
  if (batch === undefined) return decodeBatchOfCalls(data) ?? decodeUserOperationCalls(data);
  // ERC-7821: address 0 stands for the account itself.
  return batch.map((call) => (/^0x0{40}$/.test(call.to) ? { ...call, to: address } : call));
}
