import * as AbiFunction from 'ox/AbiFunction';
import { hexToBytes } from '../../crypto/encoding.ts';
import { type AbiValue, compileCall } from './abi-values.ts';

/** One call that a smart account is asked to make. */
export interface AccountCall {
  /** `0x` and 40 hex digits. */
  readonly to: string;
  /** Wei. */
  readonly value: bigint;
  readonly data: Uint8Array;
}

function readerOf(fn: AbiFunction.AbiFunction) {
  return compileCall(AbiFunction.getSelector(fn), fn.inputs);
}

// The ways in which Light Account takes calls. Source: light-account, LightAccount.sol and BaseLightAccount.sol.
const readExecute = readerOf(AbiFunction.from('function execute(address dest, uint256 value, bytes func)'));
const readBatch = readerOf(AbiFunction.from('function executeBatch(address[] dest, bytes[] func)'));
const readBatchWithValues = readerOf(
  AbiFunction.from('function executeBatch(address[] dest, uint256[] value, bytes[] func)'),
);
// Simple7702Account, which takes single calls as Light Account does. Source: account-abstraction v0.8, BaseAccount.sol.
const readCalls = readerOf(
  AbiFunction.from([
    'struct Call { address target; uint256 value; bytes data; }',
    'function executeBatch(Call[] calls)',
  ]),
);

/**
 * The calls in a user operation's call data; undefined when it is no call that the account is known to take, or not
 * in its canonical encoding: then nothing can be said of what it does.
 */
export function decodeUserOperationCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const single = readExecute(callData);
  if (single !== undefined) return [accountCall(single)];
  const batch = readBatch(callData);
  if (batch !== undefined) return zip(texts(batch[0]), [], texts(batch[1]));
  const withValues = readBatchWithValues(callData);
  return withValues && zip(texts(withValues[0]), texts(withValues[1]), texts(withValues[2]));
}

/** The calls of a batch as Simple7702Account takes it, in its canonical encoding; undefined for anything else. */
export function decodeBatchOfCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const read = readCalls(callData);
  return read && (read[0] as readonly AbiValue[]).map(accountCall);
}

/** A call from its target, value and data as they were read. */
export function accountCall(read: AbiValue): AccountCall {
  const [to = '', value = '', data = ''] = texts(read);
  return { to, value: BigInt(value), data: hexToBytes(data.slice(2)) };
}

// INVARIANT: what is read so has elements that are no lists themselves.
function texts(read: AbiValue | undefined): readonly string[] {
  return read as readonly string[];
}

function zip(
  to: readonly string[],
  value: readonly string[],
  data: readonly string[],
): readonly AccountCall[] | undefined {
  // The contract reverts on lists of different lengths, except that no values at all means zero for each.
  if (to.length === 0 || to.length !== data.length) return undefined;
  if (value.length !== 0 && value.length !== to.length) return undefined;
  return to.map((address, index) => accountCall([address, value[index] ?? '0', data[index] ?? '']));
}
