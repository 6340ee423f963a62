import * as AbiFunction from 'ox/AbiFunction';
import * as Hex from 'ox/Hex';
import { hexToBytes } from '../../crypto/encoding.ts';

/** One call that a smart account is asked to make. */
export interface AccountCall {
  /** `0x` and 40 hex digits. */
  readonly to: string;
  /** Wei. */
  readonly value: bigint;
  readonly data: Uint8Array;
}

// The ways in which Light Account takes calls. Source: light-account, LightAccount.sol and BaseLightAccount.sol.
const execute = AbiFunction.from('function execute(address dest, uint256 value, bytes func)');
const executeBatch = AbiFunction.from('function executeBatch(address[] dest, bytes[] func)');
const executeBatchWithValues = AbiFunction.from(
  'function executeBatch(address[] dest, uint256[] value, bytes[] func)',
);

/**
 * The calls in a user operation's call data; undefined when it is no call that the account is known to take, or not
 * in its canonical encoding: then nothing can be said of what it does.
 */
export function decodeUserOperationCalls(callData: Uint8Array): readonly AccountCall[] | undefined {
  const hex = Hex.fromBytes(callData);
  try {
    switch (hex.slice(0, 10)) {
      case AbiFunction.getSelector(execute): {
        const [to, value, data] = AbiFunction.decodeData(execute, hex);
        return isCanonical(hex, AbiFunction.encodeData(execute, [to, value, data]))
          ? [{ to, value, data: hexToBytes(data.slice(2)) }]
          : undefined;
      }
      case AbiFunction.getSelector(executeBatch): {
        const [to, data] = AbiFunction.decodeData(executeBatch, hex);
        return isCanonical(hex, AbiFunction.encodeData(executeBatch, [to, data]))
          ? zip(to, [], data)
          : undefined;
      }
      case AbiFunction.getSelector(executeBatchWithValues): {
        const [to, value, data] = AbiFunction.decodeData(executeBatchWithValues, hex);
        return isCanonical(hex, AbiFunction.encodeData(executeBatchWithValues, [to, value, data]))
          ? zip(to, value, data)
          : undefined;
      }
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}

function isCanonical(given: Hex.Hex, encoded: Hex.Hex): boolean {
  return given === encoded;
}

function zip(
  to: readonly string[],
  value: readonly bigint[],
  data: readonly Hex.Hex[],
): readonly AccountCall[] | undefined {
  // The contract reverts on lists of different lengths, except that no values at all means zero for each.
  if (to.length === 0 || to.length !== data.length) return undefined;
  if (value.length !== 0 && value.length !== to.length) return undefined;
  return to.map((address, index) => ({
    to: address,
    value: value[index] ?? 0n,
    data: hexToBytes((data[index] ?? '0x').slice(2)),
  }));
}
