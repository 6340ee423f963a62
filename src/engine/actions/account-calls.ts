import type { WalletRpcRequest } from '../../generated/schemas.ts';
import { bytesToHex, hexToBytes } from '../crypto/encoding.ts';
import type { ActionUnit, PolicyAction } from '../policy/action.ts';
import { type BatchCall, decodeBatch, decodeCanonicalBatch } from '../signing/ethereum/batch-executor.ts';
import { decodeAccountCalls } from '../signing/ethereum/user-operation-calls.ts';

/**
 * The units of a batch that an account runs by a transaction to itself; undefined for other calldata. A call to
 * address 0 is a call to the account itself (ERC-7821).
 */
export function batchUnits(
  data: Uint8Array,
  chainId: bigint,
  account: string,
): readonly ActionUnit[] | undefined {
  return decodeBatch(data)
    ?.map((call) => toAccount(call, account))
    .map(unitOf(chainId));
}

/** Resolves the target of a call in an ERC-7821 batch, where address 0 stands for the account itself. */
function toAccount(call: BatchCall, account: string): BatchCall {
  return /^0x0{40}$/.test(call.to) ? { ...call, to: account } : call;
}

/** The units of the call data of a sponsored user operation (0x hex); undefined for other call data. */
export function operationUnits(callData: string, chainId: bigint): readonly ActionUnit[] | undefined {
  const units = decodeAccountCalls(hexToBytes(callData.slice(2)))?.map(unitOf(chainId));
  return units?.length === 1 ? [{ ...units[0]!, label: 'transaction' }] : units;
}

function unitOf(chainId: bigint) {
  return (call: BatchCall, index: number): ActionUnit => ({
    label: `call ${index}`,
    ethereumCall: { ...call, chainId },
  });
}

const SELECTOR_BYTES = 4;

/**
 * The units without the suffix that the server appends to the calldata of the last call.
 * @param suffix 0x hex
 *
 * CHOICE: functions ignore bytes after their arguments, so rules evaluate the call without the suffix. A suffix that
 * determines the function, or that is part of the code of a new contract, stays part of the call.
 */
export function withoutSuffix(units: readonly ActionUnit[], suffix = '0x'): readonly ActionUnit[] {
  const last = units.at(-1);
  const call = last?.ethereumCall;
  const kept = (call?.data.length ?? 0) - (suffix.length - 2) / 2;
  if (last === undefined || call?.to === undefined || kept < SELECTOR_BYTES) return units;
  if (bytesToHex(call.data.subarray(kept)) !== suffix.slice(2).toLowerCase()) return units;
  return [...units.slice(0, -1), { ...last, ethereumCall: { ...call, data: call.data.subarray(0, kept) } }];
}

const MAX_DEPTH = 8;

/**
 * Replaces every call of an account to itself by the calls that it requests. Each of these needs its own permission;
 * otherwise a self-call could bypass the rules on the calls inside it. Any other self-call is unreadable, because its
 * effect depends on the account's code.
 *
 * @param address the account's address; without it, no call is recognized as a self-call.
 */
export function unfoldBatches(action: PolicyAction, address: string | undefined): PolicyAction {
  if (address === undefined) return action;
  return { ...action, units: action.units.flatMap((unit) => unfold(unit, address.toLowerCase(), MAX_DEPTH)) };
}

/** The account that makes a request's calls: the sender of a user operation, otherwise the wallet itself. */
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
 * The calls that calldata requests from an account. Only the canonical encodings of the known accounts are read: the
 * batch executor and the user-operation accounts.
 */
function callsIn(data: Uint8Array, address: string): readonly BatchCall[] | undefined {
  const batch = decodeCanonicalBatch(data);
  if (batch === undefined) return decodeAccountCalls(data);
  return batch.map((call) => toAccount(call, address));
}
