import * as AbiParameters from 'ox/AbiParameters';
import { bytesTo0xHex, hexToBytes } from '../../crypto/encoding.ts';
import { decodeExecution } from './user-operation-calls.ts';

/** One call of a batch. Addresses are 0x hex. */
export interface BatchCall {
  readonly to: string;
  readonly value: bigint;
  readonly data: Uint8Array;
}

/**
 * The smart contract to which an account delegates (EIP-7702) to run a batch: the public Basic EOA Batch Executor. It
 * implements ERC-7821 and accepts batches from the account itself only.
 *
 * CHOICE: the specification names no smart contract for batches. This one has no owner and no state, and is deployed
 * at the same address on the large chains. Simulated chains support it everywhere.
 */
export const BATCH_EXECUTOR_ADDRESS = '0x00000000bebedb7c30ee418158e26e31a5a8f3e2';

// execute(bytes32 mode, bytes executionData)
const EXECUTE_SELECTOR = '0xe9ae5c53';
// ERC-7579: call type 01 (batch), execution type 00 (all or nothing), no selector, no payload
const BATCH_MODE: `0x${string}` = `0x01${'00'.repeat(31)}`;

const executeInputs = AbiParameters.from('bytes32 mode, bytes executionData');
const batchInputs = AbiParameters.from([
  'struct Call { address to; uint256 value; bytes data; }',
  'Call[] calls',
]);

/**
 * Encodes calldata for a delegated account that runs the calls in order and atomically: execute(bytes32 mode, bytes
 * abi.encode(Call[])). Source: ERC-7821.
 */
export function encodeBatch(calls: readonly BatchCall[]): Uint8Array {
  const items = calls.map(({ to, value, data }) => ({
    to: to as `0x${string}`,
    value,
    data: bytesTo0xHex(data),
  }));
  const executionData = AbiParameters.encode(batchInputs, [items], { checksumAddress: false });
  const encoded = AbiParameters.encode(executeInputs, [BATCH_MODE, executionData]);
  return hexToBytes(EXECUTE_SELECTOR.slice(2) + encoded.slice(2));
}

// supportsExecutionMode(bytes32 mode)
const SUPPORTS_SELECTOR = 'd03c7914';

/**
 * Encodes the calldata of the ERC-7821 query that asks whether an account supports the batches of `encodeBatch`. The
 * result of the query is a bool.
 */
export function encodeSupportsBatches(): Uint8Array {
  return hexToBytes(SUPPORTS_SELECTOR + BATCH_MODE.slice(2));
}

/**
 * Decodes a batch in the canonical encoding of `encodeBatch`. Returns undefined for other calldata. The executor
 * treats a call to address 0 as a call to the account itself.
 */
export function decodeCanonicalBatch(data: Uint8Array): readonly BatchCall[] | undefined {
  const execution = decodeExecution(data);
  return execution?.mode === BATCH_MODE ? execution.calls : undefined;
}

/**
 * Decodes a batch as leniently as the executor does, for example with trailing bytes. Returns undefined if the
 * calldata is not a batch in this mode. The executor treats a call to address 0 as a call to the account itself.
 */
export function decodeBatch(data: Uint8Array): readonly BatchCall[] | undefined {
  const hex = bytesTo0xHex(data);
  if (!hex.startsWith(EXECUTE_SELECTOR)) return undefined;
  try {
    const [mode, executionData] = AbiParameters.decode(executeInputs, `0x${hex.slice(10)}`);
    if (mode !== BATCH_MODE) return undefined;
    const [calls] = AbiParameters.decode(batchInputs, executionData);
    return calls.map((call) => ({
      to: call.to.toLowerCase(),
      value: call.value,
      data: hexToBytes(call.data.slice(2)),
    }));
  } catch {
    return undefined;
  }
}
