import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes } from '../../../crypto/encoding.ts';
import type { ConditionInput } from '../../../policy/source.ts';
import {
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../../../signing/ethereum/sign-transaction.ts';
import { hashUserOperation, type UserOperationParams } from '../../../signing/ethereum/user-operation.ts';
import { encodeAccountCall } from '../../../signing/ethereum/user-operation-calls.ts';
import { chainOfCaip2 } from '../../access/chains/known-chains.ts';
import { decimalText } from '../../wallets/balances/decimal.ts';

/** A request to try under a policy. */
export interface TriedRequest {
  readonly operation: 'walletRpc' | 'rawSignWallet' | 'exportWallet' | 'transferFromWallet';
  /** The rule method, or the rpc method of a request without one. */
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Requests with one effect: a call, and what makes the same signatures. */
export interface Effect {
  /** The methods whose rules are about such calls. */
  readonly calls: readonly TriedRequest[];
  /** Requests that sign the hash of the transaction in `calls`. */
  readonly hashes: readonly TriedRequest[];
  /** Requests that sign the user operation in `calls`. */
  readonly disguised: readonly TriedRequest[];
}

/** How many values of each field are tried; the product bounds the work. */
const MOST = { receivers: 4, values: 5, chains: 3 };
const STRANGER = '0x00000000000000000000000000000000deadbeef';
const SENDER = '0x1111111111111111111111111111111111111111';
const ENTRY_POINT_07 = '0x0000000071727de22e5e9d8baf0edac6f37da032';
const ENTRY_POINT_08 = '0x4337084d9e255ff0702461cf8895ce9e3b5ff108';
const GAS = 100_000n;
const PRICE = 1_000_000_000n;

/** A public key to encrypt an export to: the P-256 base point, as SubjectPublicKeyInfo. */
const RECIPIENT =
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==';
const hpke = { encryption_type: 'HPKE', recipient_public_key: RECIPIENT };

/** The exports of a wallet's key. */
export const exportRequests: readonly TriedRequest[] = [
  { operation: 'exportWallet', method: 'exportPrivateKey', request: hpke },
  { operation: 'exportWallet', method: 'exportSeedPhrase', request: { ...hpke, export_seed_phrase: true } },
];

/** The raw signature of a 32-byte hash. */
export function hashRequest(hash: string): TriedRequest {
  return { operation: 'rawSignWallet', method: 'signRawMessageBytes', request: { params: { hash } } };
}

/** Calls with the receivers, values and chains that the conditions name, and with others. */
export async function* ethereumEffects(conditions: readonly ConditionInput[]): AsyncGenerator<Effect> {
  const named = (field: string): string[] =>
    conditions
      .filter((each) => each.field_source === 'ethereum_transaction' && each.field === field)
      .filter(({ operator }) => operator !== 'in_condition_set')
      .flatMap(({ value }) => value);
  const transfers = conditions.filter(({ field }) => field === 'destination.address');
  const receivers = [...named('to'), ...transfers.flatMap(({ value }) => value)].filter(isAddress);
  const values = named('value').map(BigInt);
  const chains = named('chain_id').map(Number).filter(Number.isSafeInteger);
  for (const to of distinct([STRANGER, ...receivers], MOST.receivers)) {
    for (const value of distinct([1n, ...values.flatMap((each) => [each + 1n, each])], MOST.values)) {
      for (const chainId of distinct([1, ...chains, 10], MOST.chains)) {
        if (value >= 0n && chainId > 0) yield await effectOf({ to, value, chainId });
      }
    }
  }
}

function distinct<T>(values: readonly T[], most: number): readonly T[] {
  return [...new Set(values)].slice(0, most);
}

function isAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text);
}

interface Call {
  readonly to: string;
  readonly value: bigint;
  readonly chainId: number;
}

const hex = (value: bigint): string => `0x${value.toString(16)}`;
const rpc = (method: string, request: object): TriedRequest => ({
  operation: 'walletRpc',
  method,
  request: { method, ...request },
});

async function effectOf(call: Call): Promise<Effect> {
  const { to, value, chainId } = call;
  const caip2 = `eip155:${chainId}`;
  const transaction = {
    ...{ type: 2, chain_id: chainId, nonce: 0, to, value: hex(value) },
    ...{ gas_limit: hex(GAS), max_fee_per_gas: hex(PRICE), max_priority_fee_per_gas: hex(PRICE) },
  };
  const prepared = await prepareEthereumTransaction(transaction as EthereumTransaction);
  const hash = bytesTo0xHex(keccak_256(hexToBytes(prepared.signingBytes().slice(2))));
  const operation = operationOf(call, ENTRY_POINT_07);
  return {
    calls: [
      rpc('eth_signTransaction', { params: { transaction } }),
      rpc('eth_sendTransaction', { caip2, params: { transaction: { to, value: hex(value) } } }),
      rpc('wallet_sendCalls', { caip2, params: { calls: [{ to, value: hex(value) }] } }),
      rpc('eth_signUserOperation', { params: operation }),
      ...transferOf(call),
    ],
    hashes: [hashRequest(hash), rpc('secp256k1_sign', { params: { hash } })],
    disguised: [
      rpc('personal_sign', {
        params: { message: bytesTo0xHex(hashUserOperation(operation).hash), encoding: 'hex' },
      }),
      rpc('eth_signTypedData_v4', {
        params: { typed_data: typedOperation(operationOf(call, ENTRY_POINT_08)) },
      }),
    ],
  };
}

/** The same payment as a transfer, where the chain and its asset have names. */
function transferOf({ to, value, chainId }: Call): readonly TriedRequest[] {
  const chain = chainOfCaip2(`eip155:${chainId}`);
  if (chain?.native === undefined || value === 0n) return [];
  const amount = decimalText({ digits: value, scale: chain.native.decimals });
  const source = { asset: chain.native.asset, amount, chain: chain.name };
  return [
    {
      operation: 'transferFromWallet',
      method: 'transfer',
      request: { source, destination: { address: to } },
    },
  ];
}

function operationOf({ to, value, chainId }: Call, contract: string): UserOperationParams {
  return {
    contract,
    chain_id: chainId,
    user_operation: {
      ...{ sender: SENDER, nonce: '0x0' },
      call_data: bytesTo0xHex(encodeAccountCall({ to, value, data: new Uint8Array() })),
      ...{ call_gas_limit: hex(GAS), verification_gas_limit: hex(GAS), pre_verification_gas: hex(GAS) },
      ...{ max_fee_per_gas: hex(PRICE), max_priority_fee_per_gas: hex(PRICE) },
    },
  };
}

const word = (high: string, low: string): string =>
  `0x${[high, low].map((value) => BigInt(value).toString(16).padStart(32, '0')).join('')}`;

/** A user operation without factory and paymaster as typed data. Source: ERC-4337, EntryPoint v0.8. */
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
