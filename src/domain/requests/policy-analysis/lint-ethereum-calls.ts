import { bytesTo0xHex, hexToBytes } from '../../../engine/crypto/encoding.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import {
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../../../engine/signing/ethereum/any-transaction.ts';
import { contractAbi, encodeTokenCall } from '../../../engine/signing/ethereum/contract-calls.ts';
import {
  hashUserOperation,
  type UserOperationParams,
} from '../../../engine/signing/ethereum/user-operation.ts';
import { encodeAccountCall } from '../../../engine/signing/ethereum/user-operation-calls.ts';
import { hashRequest, rpc, type TriedRequest } from './lint-requests.ts';

/** An address that no rule names. */
export const STRANGER = '0x00000000000000000000000000000000deadbeef';
export const SENDER = '0x1111111111111111111111111111111111111111';
const ENTRY_POINT_07 = '0x0000000071727de22e5e9d8baf0edac6f37da032';
const ENTRY_POINT_08 = '0x4337084d9e255ff0702461cf8895ce9e3b5ff108';
const GAS = 100_000n;
const PRICE = 1_000_000_000n;

export function isEvmAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text);
}

export interface EthereumCall {
  readonly to: string;
  readonly value: bigint;
  readonly chainId: number;
  readonly sender: string;
  /** The calldata as 0x hex. */
  readonly data?: string | undefined;
}

const hex = (value: bigint): string => `0x${value.toString(16)}`;

/** Returns requests that make the call, one for each method that can make it. */
export function callRequests(
  call: EthereumCall,
  more: Pick<TriedRequest, 'marks' | 'token'> = {},
): readonly TriedRequest[] {
  const { to, value, data } = call;
  const caip2 = `eip155:${call.chainId}`;
  const body = { to, value: hex(value), ...(data === undefined ? {} : { data }) };
  return [
    rpc('eth_signTransaction', { params: { transaction: transactionOf(call) } }, more),
    rpc('eth_sendTransaction', { caip2, params: { transaction: body } }, more),
    rpc('wallet_sendCalls', { caip2, params: { calls: [body] } }, more),
    rpc('eth_signUserOperation', { params: operationOf(call, ENTRY_POINT_07) }, more),
  ];
}

function transactionOf({ to, value, chainId, data }: EthereumCall) {
  return {
    ...{ type: 2, chain_id: chainId, nonce: 0, to, value: hex(value) },
    ...{ gas_limit: hex(GAS), max_fee_per_gas: hex(PRICE), max_priority_fee_per_gas: hex(PRICE) },
    ...(data === undefined ? {} : { data }),
  };
}

/** Returns the bytes whose hash `eth_signTransaction` signs for a call. */
export async function signedBytesOf(call: EthereumCall): Promise<Uint8Array> {
  const prepared = await prepareEthereumTransaction(transactionOf(call) as EthereumTransaction);
  return hexToBytes(prepared.signingBytes().slice(2));
}

/**
 * Returns requests that sign the user operation of a call in another form: its hash as a message, and the operation as
 * typed data.
 */
export function disguisedOperations(call: EthereumCall): readonly TriedRequest[] {
  const { hash } = hashUserOperation(operationOf(call, ENTRY_POINT_07));
  return [
    rpc('personal_sign', { params: { message: bytesTo0xHex(hash), encoding: 'hex' } }),
    rpc('eth_signTypedData_v4', {
      params: { typed_data: typedOperation(operationOf(call, ENTRY_POINT_08)) },
    }),
  ];
}

/** Returns requests that sign a hash directly. */
export function hashRequests(hash: Uint8Array): readonly TriedRequest[] {
  return [hashRequest(hash), rpc('secp256k1_sign', { params: { hash: bytesTo0xHex(hash) } })];
}

function operationOf(
  { to, value, chainId, sender, data = '0x' }: EthereumCall,
  contract: string,
): UserOperationParams {
  return {
    contract,
    chain_id: chainId,
    user_operation: {
      ...{ sender, nonce: '0x0' },
      call_data: bytesTo0xHex(encodeAccountCall({ to, value, data: hexToBytes(data.slice(2)) })),
      ...{ call_gas_limit: hex(GAS), verification_gas_limit: hex(GAS), pre_verification_gas: hex(GAS) },
      ...{ max_fee_per_gas: hex(PRICE), max_priority_fee_per_gas: hex(PRICE) },
    },
  };
}

const word = (high: string, low: string): string =>
  `0x${[high, low].map((value) => BigInt(value).toString(16).padStart(32, '0')).join('')}`;

/** Returns a user operation without factory and paymaster as typed data. Source: ERC-4337, EntryPoint v0.8. */
function typedOperation({ contract, chain_id, user_operation: operation }: UserOperationParams) {
  return {
    domain: { name: 'ERC4337', version: '1', chainId: Number(chain_id), verifyingContract: contract },
    types: {
      PackedUserOperation: [
        { name: 'sender', type: 'address' },
        { name: 'nonce', type: 'uint256' },
        { name: 'initCode', type: 'bytes' },
        { name: 'callData', type: 'bytes' },
        { name: 'accountGasLimits', type: 'bytes32' },
        { name: 'preVerificationGas', type: 'uint256' },
        { name: 'gasFees', type: 'bytes32' },
        { name: 'paymasterAndData', type: 'bytes' },
      ],
    },
    primary_type: 'PackedUserOperation',
    message: {
      sender: operation.sender,
      nonce: operation.nonce,
      initCode: '0x',
      callData: operation.call_data,
      accountGasLimits: word(String(operation.verification_gas_limit), String(operation.call_gas_limit)),
      preVerificationGas: operation.pre_verification_gas,
      gasFees: word(String(operation.max_priority_fee_per_gas), String(operation.max_fee_per_gas)),
      paymasterAndData: '0x',
    },
  };
}

/** A function of an ERC-20 token with its arguments, also on Tron. Addresses are lower-case `0x` hex. */
export interface TokenFunction {
  readonly name: string;
  /** The calldata as 0x hex. */
  readonly data: string;
  /** Conditions that only calls of this function satisfy. */
  readonly marks: readonly ConditionInput[];
}

interface TokenTerms {
  readonly owner: string;
  readonly to: string;
  readonly amount: bigint;
  /** The field source for calldata on this chain type. */
  readonly source: 'ethereum_calldata' | 'tron_trigger_smart_contract_data';
}

const PARAMETERS = {
  transfer: ['to:address', 'value:uint256'],
  approve: ['spender:address', 'value:uint256'],
  increaseAllowance: ['spender:address', 'addedValue:uint256'],
  transferFrom: ['from:address', 'to:address', 'value:uint256'],
  // For smart contracts that call themselves, such as many tokens and routers.
  multicall: ['data:bytes[]'],
} as const;
const multicall = contractAbi(['function multicall(bytes[] data)']);
// The first 4 bytes of keccak256("increaseAllowance(address,uint256)"), a function of OpenZeppelin's tokens.
const INCREASE_ALLOWANCE = '39509351';

function markOf(name: keyof typeof PARAMETERS, source: TokenTerms['source']): ConditionInput {
  const inputs = PARAMETERS[name].map((each) => {
    const [parameter, type] = each.split(':');
    return { name: parameter, type };
  });
  const abi = [{ type: 'function', name, stateMutability: 'nonpayable', inputs, outputs: [] }];
  return { field_source: source, field: 'function_name', operator: 'eq', value: name, abi };
}

/** Returns the functions by which an account gives tokens away. The transfer comes first. */
export function tokenFunctions({ owner, to, amount, source }: TokenTerms): readonly TokenFunction[] {
  const approval = encodeTokenCall({ name: 'approve', spender: to, amount });
  const increase = hexToBytes(INCREASE_ALLOWANCE + bytesTo0xHex(approval).slice(10));
  const transfer = encodeTokenCall({ name: 'transfer', to, amount });
  const functions = {
    transfer,
    approve: approval,
    increaseAllowance: increase,
    transferFrom: encodeTokenCall({ name: 'transferFrom', from: owner, to, amount }),
    multicall: multicall.encodeCall('multicall', [bytesTo0xHex(transfer)]),
  };
  return Object.entries(functions).map(([name, data]) => ({
    name,
    data: bytesTo0xHex(data),
    marks: [markOf(name as keyof typeof PARAMETERS, source)],
  }));
}
