import * as AbiFunction from 'ox/AbiFunction';
import * as Hex from 'ox/Hex';
import { hexToBytes } from '../../crypto/encoding.ts';
import type { BatchCall } from './batch-executor.ts';

/**
 * The contract to which an account delegates (EIP-7702) to execute user operations: the Simple7702Account by the
 * authors of ERC-4337, deployed at the same address on the large chains. It verifies the signature of the account's
 * own key over the operation's hash. Source: eth-infinitism/account-abstraction v0.8, Simple7702Account.sol.
 *
 * CHOICE: the specification names no account contract for sponsored gas. This one has no owner other than the
 * account's key, no state and no modules.
 */
export const SIMPLE_ACCOUNT_ADDRESS = '0xe6cae83bde06e4c305530e199d7217f42808555b';
/** Entry point 0.8. */
export const ENTRY_POINT_ADDRESS = '0x4337084d9e255ff0702461cf8895ce9e3b5ff108';
/** The version of the entry point at that address. */
export const ENTRY_POINT_VERSION = '0.8';

const execute = AbiFunction.from('function execute(address target, uint256 value, bytes data)');
const executeBatch = AbiFunction.from([
  'struct Call { address target; uint256 value; bytes data; }',
  'function executeBatch(Call[] calls)',
]);

/** Call data for the account: `execute` for a single call, otherwise `executeBatch`, which is atomic. */
export function encodeAccountCalls(calls: readonly BatchCall[]): Uint8Array {
  const items = calls.map(({ to, value, data }) => ({
    target: to as `0x${string}`,
    value,
    data: Hex.fromBytes(data),
  }));
  const [only] = items;
  const hex =
    only !== undefined && items.length === 1
      ? AbiFunction.encodeData(execute, [only.target, only.value, only.data])
      : AbiFunction.encodeData(executeBatch, [items]);
  return hexToBytes(hex.slice(2));
}
