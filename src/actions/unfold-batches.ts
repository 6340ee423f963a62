import type { WalletRpcRequest } from '../generated/schemas.ts';
import type { ActionUnit, PolicyAction } from '../policy/action.ts';
import { type BatchCall, decodeCanonicalBatch } from '../signing/ethereum/batch-executor.ts';
import { decodeAccountCalls } from '../signing/ethereum/user-operation-calls.ts';
import { toAccount } from './account-calls.ts';

const MAX_DEPTH = 8;

/**
 * Expands every call of an account to itself into the calls it requests, each of which needs its own permission;
 * otherwise a self-call could bypass the rules on the calls inside it. Any other self-call is unreadable, because its
 * effect depends on the account's code.
 *
 * @param address the account's address; without it, no call is recognized as a self-call.
 */
export function unfoldBatches(action: PolicyAction, address: string | undefined): PolicyAction {
  if (address === undefined) return action;
  return { ...action, units: action.units.flatMap((unit) => unfold(unit, address.toLowerCase(), MAX_DEPTH)) };
}

/** The account that makes a request's calls: a user operation's sender, otherwise the wallet itself. */
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
 * The calls that calldata requests from an account, in the canonical encoding of the known accounts: the batch
 * executor and the user-operation accounts.
 */
function callsIn(data: Uint8Array, address: string): readonly BatchCall[] | undefined {
  const batch = decodeCanonicalBatch(data);
  if (batch === undefined) return decodeAccountCalls(data);
  return batch.map((call) => toAccount(call, address));
}
