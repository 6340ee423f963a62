import * as AbiFunction from 'ox/AbiFunction';
import { bytesTo0xHex, hexToBytes } from '../../crypto/encoding.ts';
import { type AbiValue, compileCall } from './abi-values.ts';

/** One call that a smart account executes. */
export interface AccountCall {
  /** `0x` and 40 hex digits. */
  readonly to: string;
  /** Wei. */
  readonly value: bigint;
  readonly data: Uint8Array;
}

function decoderOf(fn: AbiFunction.AbiFunction) {
  return compileCall(AbiFunction.getSelector(fn), fn.inputs);
}

// Light Account. Source: light-account, LightAccount.sol and BaseLightAccount.sol.
const execute = AbiFunction.from('function execute(address dest, uint256 value, bytes func)');
const readExecute = decoderOf(execute);
const readBatch = decoderOf(AbiFunction.from('function executeBatch(address[] dest, bytes[] func)'));
const readBatchWithValues = decoderOf(
  AbiFunction.from('function executeBatch(address[] dest, uint256[] value, bytes[] func)'),
);
// Simple7702Account; its `execute` equals Light Account's. Source: account-abstraction v0.8, BaseAccount.sol.
const readCalls = decoderOf(
  AbiFunction.from([
    'struct Call { address target; uint256 value; bytes data; }',
    'function executeBatch(Call[] calls)',
  ]),
);

/**
 * Decodes the calls in a user operation's call data. Undefined when the function is not a known one of the account or
 * the encoding is not canonical; the effect of the operation is then unknown.
 */
export function decodeUserOperationCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const single = readExecute(callData);
  if (single !== undefined) return [accountCall(single)];
  const batch = readBatch(callData);
  if (batch !== undefined) return zip(texts(batch[0]), [], texts(batch[1]));
  const withValues = readBatchWithValues(callData);
  return withValues && zip(texts(withValues[0]), texts(withValues[1]), texts(withValues[2]));
}

/** The call data of an account that makes one call. */
export function encodeAccountCall({ to, value, data }: AccountCall): Uint8Array {
  const dataHex = AbiFunction.encodeData(execute, [to as `0x${string}`, value, bytesTo0xHex(data)]);
  return hexToBytes(dataHex.slice(2));
}

/** Decodes a batch of Simple7702Account in canonical encoding; undefined for other call data. */
export function decodeBatchOfCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const read = readCalls(callData);
  return read && (read[0] as readonly AbiValue[]).map(accountCall);
}

/** Builds a call from a decoded `[target, value, data]`. */
export function accountCall(read: AbiValue): AccountCall {
  const [to = '', value = '', data = ''] = texts(read);
  return { to, value: BigInt(value), data: hexToBytes(data.slice(2)) };
}

// INVARIANT: called only for flat lists.
function texts(read: AbiValue | undefined): readonly string[] {
  return read as readonly string[];
}

function zip(
  to: readonly string[],
  value: readonly string[],
  data: readonly string[],
): readonly AccountCall[] | undefined {
  // The contract reverts on lists of different lengths. Without values, each call sends 0.
  if (to.length === 0 || to.length !== data.length) return undefined;
  if (value.length !== 0 && value.length !== to.length) return undefined;
  return to.map((address, index) => accountCall([address, value[index] ?? '0', data[index] ?? '']));
}
