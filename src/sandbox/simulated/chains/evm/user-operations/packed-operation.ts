import { bytesTo0xHex, bytesToHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { hashUserOperation } from '../../../../../engine/signing/ethereum/user-operation.ts';
import { wordOf } from '../contracts/storage-layout.ts';
import type { EvmState } from '../state.ts';
import { type PackedOperation, requirement } from './entry-point.ts';

// Converts operations to the format in which the entry point and accounts receive them.

const DELEGATE_MARKER = '7702';

/** Splits a word into two numbers, the high half first. */
export const uint128s = (word: string): readonly [bigint, bigint] => {
  const value = BigInt(word);
  return [value >> 128n, BigInt.asUintN(128, value)];
};

export type Limits = ReturnType<typeof limitsOf>;

export function limitsOf(operation: PackedOperation) {
  const [verification, call] = uint128s(operation.accountGasLimits);
  const [priorityFee, maxFee] = uint128s(operation.gasFees);
  const paymaster = hexToBytes(operation.paymasterAndData.slice(2));
  const ofPaymaster = paymaster.length >= 52 ? bytesToHex(paymaster.subarray(20, 52)) : wordOf(0);
  const [paymasterVerification, paymasterPostOp] = uint128s(`0x${ofPaymaster}`);
  return {
    ...{ verification, call, priorityFee, maxFee, paymasterVerification, paymasterPostOp },
    preVerification: operation.preVerificationGas,
    paymaster: paymaster.length === 0 ? undefined : bytesTo0xHex(paymaster.subarray(0, 20)),
  };
}

/** Returns the hash of a packed operation under the rules of an entry point. */
export function hashOfPacked(state: EvmState, contract: string, operation: PackedOperation): string {
  const { sender, nonce, initCode, callData, preVerificationGas, paymasterAndData } = operation;
  const { verification, call, priorityFee, maxFee, ...limits } = limitsOf(operation);
  const factory = factoryOf(state, operation);
  const hex = (value: bigint): string => `0x${value.toString(16)}`;
  const { hash } = hashUserOperation({
    ...{ contract, chain_id: Number(state.chainId) },
    user_operation: {
      ...{ sender, nonce: hex(nonce), call_data: callData, call_gas_limit: hex(call) },
      ...{ verification_gas_limit: hex(verification), pre_verification_gas: hex(preVerificationGas) },
      ...{ max_fee_per_gas: hex(maxFee), max_priority_fee_per_gas: hex(priorityFee) },
      ...(factory === undefined ? {} : { factory, factory_data: `0x${initCode.slice(42)}` }),
      ...(limits.paymaster === undefined
        ? {}
        : {
            ...{ paymaster: limits.paymaster, paymaster_data: `0x${paymasterAndData.slice(2 + 104)}` },
            paymaster_verification_gas_limit: hex(limits.paymasterVerification),
            paymaster_post_op_gas_limit: hex(limits.paymasterPostOp),
          }),
    },
  });
  return bytesTo0xHex(hash);
}

/**
 * Returns the factory of an operation, or undefined if it has none. For a delegated account, returns the delegate,
 * which the entry point hashes instead.
 */
function factoryOf(state: EvmState, { sender, initCode }: PackedOperation): string | undefined {
  if (initCode === '0x') return undefined;
  if (!isDelegateMarker(initCode)) return initCode.slice(0, 42);
  const delegate = state.accounts.delegate(sender.toLowerCase());
  if (delegate === undefined) throw requirement('not EIP-7702 delegate');
  return delegate;
}

/** Returns whether the account is delegated instead of created by a factory (EIP-7702). */
export function isDelegateMarker(initCode: string): boolean {
  return initCode.slice(2, 42).padEnd(40, '0') === DELEGATE_MARKER.padEnd(40, '0');
}

/** Packs an operation. Its limits are in units of gas and its fees in wei. */
export function packOperation(fields: {
  readonly sender: string;
  readonly nonce: bigint;
  readonly initCode: string;
  readonly callData: string;
  readonly verification: bigint;
  readonly call: bigint;
  readonly preVerification: bigint;
  readonly priorityFee: bigint;
  readonly maxFee: bigint;
  readonly paymasterAndData: string;
  readonly signature: string;
}): PackedOperation {
  const pair = (high: bigint, low: bigint): `0x${string}` => `0x${wordOf((high << 128n) | low)}`;
  return {
    ...{ sender: fields.sender as `0x${string}`, nonce: fields.nonce },
    ...{ initCode: fields.initCode as `0x${string}`, callData: fields.callData as `0x${string}` },
    accountGasLimits: pair(fields.verification, fields.call),
    preVerificationGas: fields.preVerification,
    gasFees: pair(fields.priorityFee, fields.maxFee),
    paymasterAndData: fields.paymasterAndData as `0x${string}`,
    signature: fields.signature as `0x${string}`,
  };
}
