import { NodeError } from '../../../../../adapters/chain-rpc/endpoint.ts';
import { isRecord, type RpcCall, RpcError } from '../../rpc-calls.ts';
import type { EvmParts } from '../parts.ts';
import { findReceipt } from '../receipts.ts';
import type { Upstream } from '../upstream.ts';
import { hashText, numberOf } from './calls.ts';
import { knownBlock } from './logs.ts';
import { quantity } from './views.ts';

/** For a chain that continues a real one, calls about the real chain's blocks are answered by its node. */

/** The position of the block in the parameters of methods. */
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
]);

type Answer = { readonly result: unknown } | undefined;

/** The real chain's answer to a call about its own blocks; undefined for a call about later blocks. @throws RpcError */
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

/** The number of a block of the real chain; undefined for a later or unknown block. */
function earlierBlock(parts: EvmParts, { block }: Upstream, given: unknown): number | undefined {
  // Most calls name no block, or the latest block.
  if (given == null || given === 'latest' || given === 'pending') return undefined;
  const number = knownBlock(parts, given);
  return number !== undefined && number <= block ? number : undefined;
}

/**
 * The real chain's answer to a call about a hash that this chain does not know. @throws RpcError
 *
 * @param own the answer of this chain.
 */
export async function orUpstream(
  parts: EvmParts,
  { method, params }: RpcCall,
  own: unknown,
): Promise<unknown> {
  const { upstream } = parts.state;
  if (own !== null || upstream === undefined || !byHash.has(method)) return own;
  // Clients poll for the receipt of a pending transaction.
  if (parts.pool.isKnown(hashText(params[0]))) return own;
  const found = await ask(upstream, method, params);
  if (!isRecord(found)) return found;
  const block = found.blockNumber ?? found.number;
  // The real chain has produced more blocks in the meantime.
  return block != null && numberOf(block, 'block') > BigInt(upstream.block) ? null : found;
}

/** The logs of the real chain that a filter selects, and the remaining part of the filter. @throws RpcError */
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
