import { equalBytes } from '../../crypto/encoding.ts';
import { type BatchCall, decodeCanonicalBatch, encodeBatch } from '../../signing/ethereum/batch-executor.ts';
import { parseHexBytes, parseQuantity, type Quantity } from '../../signing/fields.ts';
import { completedOnEthereum, type Fields } from './completed-fields.ts';
import type { SignTask } from './requested-task.ts';

/** What an EVM task has a wallet call. */
export interface SignedCalls {
  readonly caip2: string;
  /** Recipients are in lower case. */
  readonly calls: readonly BatchCall[];
  /** The account that makes them, where the task names it. */
  readonly account?: string | undefined;
}

const named: ReadonlySet<string> = new Set(['to', 'value', 'data', ...completedOnEthereum]);

/**
 * The call of a transaction, or the calls of a batch that an account runs by a transaction to itself. Undefined for a task
 * that does anything else, or more.
 *
 * NOTE: no user operations and no delegations: only a server with a paymaster builds them.
 */
export function signedCalls({ method, params }: SignTask): SignedCalls | undefined {
  if (method !== 'eth_signTransaction') return undefined;
  const { transaction } = params as { readonly transaction: Fields };
  const { to, value = 0, data = '0x', chain_id: chainId } = transaction;
  const isKnown = ([name, given]: [string, unknown]) => given === undefined || named.has(name);
  if (!Object.entries(transaction).every(isKnown) || typeof to !== 'string') return undefined;
  // Without a chain, it takes effect on every one.
  if (chainId === undefined) return undefined;
  const call = {
    to: to.toLowerCase(),
    value: parseQuantity(value as Quantity, '/transaction/value', 256),
    data: parseHexBytes(String(data), '/transaction/data'),
  };
  const caip2 = caip2Of(chainId);
  // Not as leniently as the contract: calls that share their bytes would be unfolded to more than there is memory for.
  const batch = decodeCanonicalBatch(call.data);
  if (batch === undefined) return { caip2, calls: [call] };
  const isPlain = call.value === 0n && equalBytes(encodeBatch(batch), call.data);
  return isPlain ? { caip2, calls: batch, account: to } : undefined;
}

function caip2Of(chainId: unknown): string {
  return `eip155:${parseQuantity(chainId as Quantity, '/chain_id', 256)}`;
}
