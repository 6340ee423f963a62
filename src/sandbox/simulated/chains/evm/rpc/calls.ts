import { hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import type { EvmAuthorization } from '../../../../../ports/chains.ts';
import { invalid, isRecord } from '../../rpc-calls.ts';
import type { AccessList } from '../interpreter.ts';
import { BLOCK_GAS_LIMIT } from '../machine.ts';

// Parses the parameters of the Ethereum JSON-RPC methods.

export const SERVER_ERROR = -32_000;
export const REVERTED = 3;

export function bytesOf(value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{2})*$/.test(value)) {
    throw invalid('invalid argument: expected 0x and pairs of hex digits');
  }
  return hexToBytes(value.slice(2));
}

export function addressOf(value: unknown): string {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)) return value.toLowerCase();
  throw invalid('invalid argument: expected an address of 0x and 40 hex digits');
}

export function hashText(value: unknown): string {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value)) return value.toLowerCase();
  throw invalid('invalid argument: expected a hash of 0x and 64 hex digits');
}

export function numberOf(value: unknown, name: string): bigint {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{1,64}$/.test(value)) return BigInt(value);
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw invalid(`invalid argument: expected \`${name}\` as 0x and hex digits`);
}

const NO_ADDRESS = `0x${'0'.repeat(40)}`;

/** The call object of a request, with defaults for missing fields. */
export interface Call {
  readonly from: string;
  readonly to: string | null;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly gas: bigint;
  /** The value that the opcode GASPRICE returns. */
  readonly gasPrice: bigint;
  readonly hasGas: boolean;
  readonly authorizationList: readonly EvmAuthorization[];
  readonly accessList: AccessList;
}

export function callOf(value: unknown): Call {
  if (!isRecord(value)) throw invalid('invalid argument: expected a transaction object');
  const { from, to, data, input, value: amount, gas, authorizationList: list, accessList } = value;
  const price = value.gasPrice ?? value.maxFeePerGas;
  return {
    from: from == null ? NO_ADDRESS : addressOf(from),
    to: to == null ? null : addressOf(to),
    value: amount == null ? 0n : numberOf(amount, 'value'),
    data: bytesOf(input ?? data ?? '0x'),
    hasGas: gas != null,
    gasPrice: price == null ? 0n : numberOf(price, 'gasPrice'),
    gas: gas == null ? BLOCK_GAS_LIMIT : numberOf(gas, 'gas'),
    authorizationList: Array.isArray(list) ? list.map(authorizationOf) : [],
    accessList: Array.isArray(accessList) ? accessList.map(accessOf) : [],
  };
}

function accessOf(value: unknown): AccessList[number] {
  if (!isRecord(value)) throw invalid('invalid argument: expected an access list');
  const { address, storageKeys } = value;
  const keys: readonly unknown[] = Array.isArray(storageKeys) ? storageKeys : [];
  return { address: addressOf(address), storageKeys: keys.map(hashText) };
}

function authorizationOf(value: unknown): EvmAuthorization {
  if (!isRecord(value)) throw invalid('invalid argument: expected a signed authorization');
  const { address, chainId, nonce, yParity, r, s } = value;
  const [first, second] = [r, s].map((each) => numberOf(each, 'signature').toString(16).padStart(64, '0'));
  return {
    contract: addressOf(address),
    chainId: Number(numberOf(chainId, 'chainId')),
    nonce: numberOf(nonce, 'nonce'),
    signature: `0x${first}${second}${numberOf(yParity, 'yParity').toString(16).padStart(2, '0')}`,
  };
}
