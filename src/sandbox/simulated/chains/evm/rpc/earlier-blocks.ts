import { NodeError } from '../../../../../adapters/chain-rpc/endpoint.ts';
import { isRecord, type RpcCall, RpcError } from '../../rpc-calls.ts';
import type { EvmParts } from '../parts.ts';
import { findReceipt } from '../receipts.ts';
import type { Upstream } from '../upstream.ts';
import { hashText, numberOf } from './calls.ts';
import { knownBlock } from './logs.ts';
import { quantity } from './views.ts';

/** On a chain that forks a real one, calls about blocks of the real chain are forwarded to its node. */

/** The index of the block in the parameters of a method. */
const blockAt: Readonly<Record<string, number>> = {
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getBlockTransactionCountByNumber: 0,
  eth_getTransactionByBlockNumberAndIndex: 0,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_call: 1,
  eth_estimateGas: 1,
  eth_createAccessList: 1,
  eth_feeHistory: 1,
  debug_traceCall: 1,
  eth_getStorageAt: 2,
};
const byHash: ReadonlySet<string> = new Set([
  'eth_getBlockByHash',
  'eth_getTransactionByHash',
  'eth_getTransactionReceipt',
  'eth_getRawTransactionByHash',
  'eth_getBlockTransactionCountByHash',
  'eth_getTransactionByBlockHashAndIndex',
]);

type Answer = { readonly result: unknown } | undefined;

/**
 * Forwards a call about the real chain's own blocks to its node. Returns undefined for a call about later blocks.
 *
 * @throws RpcError
 */
export async function answerOfUpstream(parts: EvmParts, { method, params }: RpcCall): Promise<Answer> {
  const { upstream } = parts.state;
  if (upstream === undefined) return undefined;
  if (method === 'debug_traceTransaction') {
    const isOwn = findReceipt(parts.state, hashText(params[0])) !== undefined;
    return isOwn ? undefined : { result: await ask(upstream, method, params) };
  }
  if (!Object.hasOwn(blockAt, method)) return undefined;
  const at = blockAt[method]!;
  const number = earlierBlock(parts, upstream, params[at]);
  if (number === undefined) return undefined;
  return { result: await ask(upstream, method, params.with(at, quantity(number))) };
}

/** Returns the number of a block of the real chain, or undefined for a later or unknown block. */
function earlierBlock(parts: EvmParts, { block }: Upstream, given: unknown): number | undefined {
  // Most calls name no block, or the latest block.
  if (given == null || given === 'latest' || given === 'pending') return undefined;
  const number = knownBlock(parts, given);
  return number !== undefined && number <= block ? number : undefined;
}

/**
 * Returns this chain's own result for a hash, or asks the real chain's node if this chain does not know the hash.
 *
 * @param own the result of this chain.
 * @throws RpcError
 */
export async function orUpstream(
  parts: EvmParts,
  { method, params }: RpcCall,
  own: unknown,
): Promise<unknown> {
  const { upstream } = parts.state;
  if (own !== null || upstream === undefined || !byHash.has(method)) return own;
  // Clients poll for the receipt of a pending transaction. The node does not know it.
  if (parts.pool.isKnown(hashText(params[0]))) return own;
  const found = await ask(upstream, method, params);
  if (!isRecord(found)) return found;
  const block = found.blockNumber ?? found.number;
  // The real chain has produced more blocks since the fork. They are not part of this chain.
  return block != null && numberOf(block, 'block') > BigInt(upstream.block) ? null : found;
}

/**
 * Returns the logs of the real chain that a filter selects, and the part of the filter that concerns later blocks.
 *
 * @throws RpcError
 */
export async function logsOfUpstream(
  parts: EvmParts,
  filter: unknown,
): Promise<{ readonly logs: readonly unknown[]; readonly rest: unknown }> {
  const { upstream } = parts.state;
  if (upstream === undefined || !isRecord(filter)) return { logs: [], rest: filter };
  const { fromBlock, toBlock, blockHash } = filter;
  const askFor = async (fields: object) =>
    (await ask(upstream, 'eth_getLogs', [{ ...filter, ...fields }])) as readonly unknown[];
  if (blockHash != null) {
    const isOwn = knownBlock(parts, { blockHash }) !== undefined;
    return isOwn ? { logs: [], rest: filter } : { logs: await askFor({}), rest: undefined };
  }
  const from = earlierBlock(parts, upstream, fromBlock);
  if (from === undefined) return { logs: [], rest: filter };
  const to = earlierBlock(parts, upstream, toBlock);
  const logs = await askFor({ fromBlock: quantity(from), toBlock: quantity(to ?? upstream.block) });
  const rest = to === undefined ? { ...filter, fromBlock: quantity(upstream.block + 1) } : undefined;
  return { logs, rest };
}

async function ask(upstream: Upstream, method: string, params: readonly unknown[]): Promise<unknown> {
  try {
    return await upstream.ask(method, params);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    const { code, message, data } = error;
    throw new RpcError(code, message, typeof data === 'string' ? data : undefined);
  }
}
