import { hexToBytes } from '../crypto/encoding.ts';
import type { ActionUnit } from '../policy/action.ts';
import { type BatchCall, decodeBatch } from '../signing/ethereum/batch-executor.ts';
import { decodeAccountCalls } from '../signing/ethereum/simple-account.ts';

/** The units of a batch that an account runs by a transaction to itself; undefined for other calldata. */
export function batchUnits(data: Uint8Array, chainId: bigint): readonly ActionUnit[] | undefined {
  return decodeBatch(data)?.map(unitOf(chainId));
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
