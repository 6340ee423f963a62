import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import { bytesTo0xHex, hexToBytes } from '../../crypto/encoding.ts';
import { type AbiValue, compileCall, compileValues } from './abi-values.ts';

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
// Simple7702Account, whose `execute` has Light Account's signature, and Coinbase Smart Wallet. Source:
// account-abstraction v0.8, BaseAccount.sol.
const call = 'struct Call { address target; uint256 value; bytes data; }';
const readCalls = decoderOf(AbiFunction.from([call, 'function executeBatch(Call[] calls)']));
// Accounts of ERC-7579, such as Kernel, and of ERC-7821.
const readExecution = decoderOf(AbiFunction.from('function execute(bytes32 mode, bytes executionData)'));
const readExecutions = compileValues(AbiParameters.from([call, 'Call[] calls']));
// executeUserOp(PackedUserOperation,bytes32): accounts with this function execute the call data after its selector.
// Source: account-abstraction, IAccountExecute.sol; Kernel.sol.
const EXECUTE_USER_OP = '0x8dd7712f';
const SELECTOR_BYTES = 4;

/**
 * Decodes the calls in a user operation's call data, if it is in canonical encoding. Returns undefined for other
 * functions, because the effect of the operation is then unknown.
 */
export function decodeUserOperationCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const isWrapped = bytesTo0xHex(callData.subarray(0, SELECTOR_BYTES)) === EXECUTE_USER_OP;
  return decodeAccountCalls(isWrapped ? callData.subarray(SELECTOR_BYTES) : callData);
}

/**
 * Decodes the calls that an account makes through a call to itself. Returns undefined for functions whose effect is
 * unknown.
 */
export function decodeAccountCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const single = readExecute(callData);
  if (single !== undefined) return [accountCall(single)];
  const batch = readBatch(callData);
  if (batch !== undefined) return zip(texts(batch[0]), [], texts(batch[1]));
  const withValues = readBatchWithValues(callData);
  if (withValues !== undefined) {
    return zip(texts(withValues[0]), texts(withValues[1]), texts(withValues[2]));
  }
  const calls = readCalls(callData);
  if (calls !== undefined) return (calls[0] as readonly AbiValue[]).map(accountCall);
  const executed = decodeExecution(callData)?.calls;
  // CHOICE: for accounts of ERC-7821, address 0 means the account itself; for other accounts it means address 0. So
  // the call counts as unknown.
  return executed?.some(({ to }) => NO_ADDRESS.test(to)) ? undefined : executed;
}

const NO_ADDRESS = /^0x0{40}$/;
// ERC-7579: call type (00 for one call, 01 for a batch), execution type (00 atomic, 01 as many as succeed), no
// selector and no payload. Other modes, such as delegate calls, have other effects.
const MODE = /^0x(0[01])0[01]0{60}$/;
const ONE_CALL = '00';
const VALUE_OFFSET = 20;
const DATA_OFFSET = VALUE_OFFSET + 32;

/**
 * Decodes `execute(bytes32 mode, bytes executionData)`. Returns undefined for unknown modes. Source: ERC-7579,
 * ERC-7821.
 */
export function decodeExecution(
  callData: Uint8Array,
): { readonly mode: string; readonly calls: readonly AccountCall[] } | undefined {
  const [mode = '', data = ''] = texts(readExecution(callData) ?? []);
  const [, type] = MODE.exec(mode) ?? [];
  if (type === undefined) return undefined;
  const execution = hexToBytes(data.slice(2));
  if (type === ONE_CALL) {
    // target || value || data
    if (execution.length < DATA_OFFSET) return undefined;
    const to = bytesTo0xHex(execution.subarray(0, VALUE_OFFSET));
    const value = BigInt(bytesTo0xHex(execution.subarray(VALUE_OFFSET, DATA_OFFSET)));
    return { mode, calls: [{ to, value, data: execution.subarray(DATA_OFFSET) }] };
  }
  const read = readExecutions(execution);
  return read && { mode, calls: (read[0] as readonly AbiValue[]).map(accountCall) };
}

export function encodeAccountCall({ to, value, data }: AccountCall): Uint8Array {
  const dataHex = AbiFunction.encodeData(execute, [to as `0x${string}`, value, bytesTo0xHex(data)]);
  return hexToBytes(dataHex.slice(2));
}

/** Builds a call from a decoded `[target, value, data]`. */
function accountCall(read: AbiValue): AccountCall {
  const [to = '', value = '', data = ''] = texts(read);
  return { to, value: BigInt(value), data: hexToBytes(data.slice(2)) };
}

// `read` must be a flat list.
function texts(read: AbiValue | undefined): readonly string[] {
  return read as readonly string[];
}

function zip(
  to: readonly string[],
  value: readonly string[],
  data: readonly string[],
): readonly AccountCall[] | undefined {
  // The account contract reverts on lists of different lengths. Without values, each call sends 0.
  if (to.length === 0 || to.length !== data.length) return undefined;
  if (value.length !== 0 && value.length !== to.length) return undefined;
  return to.map((address, index) => accountCall([address, value[index] ?? '0', data[index] ?? '']));
}
