import { ApiError, disagreementOf, invalidField } from '../../../errors.ts';
import type { AnyChain, BroadcastRefusal } from '../../../ports/chains.ts';
import type { Services } from '../../../ports/operation-context.ts';

type ChainKind = AnyChain['kind'];

const namespaces: Readonly<Record<string, ChainKind>> = { eip155: 'evm', solana: 'solana', tron: 'tron' };

/**
 * Finds the chain of a CAIP-2 id, which must be of the given kind.
 *
 * @param pointer JSON pointer to the field that names the chain.
 * @throws ApiError invalid_data for a chain of another kind, not_supported for a chain that is not configured.
 */
export function requireChain<Kind extends ChainKind>(
  { chains }: Pick<Services, 'chains'>,
  { caip2, kind, pointer = '/caip2' }: { caip2: string; kind: Kind; pointer?: string },
): Extract<AnyChain, { kind: Kind }> {
  const namespace = caip2.slice(0, caip2.indexOf(':'));
  if (namespaces[namespace] !== kind) {
    throw invalidField(pointer, `expected a chain of the wallet's type, got \`${caip2}\``);
  }
  const chain = chains.find(caip2);
  if (chain?.kind !== kind) {
    throw new ApiError('not_supported', `${pointer}: the chain \`${caip2}\` is not configured here`);
  }
  return chain as Extract<AnyChain, { kind: Kind }>;
}

/**
 * Awaits data from a chain that a transaction depends on.
 *
 * CHOICE: if the chain cannot be reached, the response is 400 `transaction_broadcast_failure`, which clients know to be
 * safe to retry. A 5xx would make clients retry immediately and automatically.
 *
 * @throws ApiError transaction_broadcast_failure
 */
export async function callChain<T>(question: Promise<T>): Promise<T> {
  try {
    return await question;
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const why = disagreementOf(cause) ?? 'the chain could not be reached';
    throw new ApiError('transaction_broadcast_failure', `${why}; nothing was signed or sent`, { cause });
  }
}

/** A payer's balance that is too low, and the amount that the payment needs, in base units. */
interface Shortfall {
  readonly caip2: string;
  readonly address: string;
  /** The token in which the payer must pay; null for the native asset. */
  readonly tokenAddress: string | null;
  readonly needed: bigint;
  readonly balance: bigint;
}

/** Returns the error for a payment that exceeds the payer's balance. */
export function insufficientFunds({ caip2, address, tokenAddress, needed, balance }: Shortfall): ApiError {
  const amounts = { raw_needed: String(needed), raw_balance: String(balance) };
  return new ApiError('insufficient_funds', undefined, {
    data: { shortfall: { caip2, address, token_address: tokenAddress, ...amounts } },
  });
}

const MAX_MESSAGE = 300;

/**
 * Returns the error for a transaction that a chain refuses, or whose simulation fails.
 *
 * @param message the chain's message.
 */
export function chainRefusal(reason: BroadcastRefusal, message: string): ApiError {
  const shown = message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 3)}...`;
  if (reason === 'insufficient_funds') return new ApiError('insufficient_funds');
  if (reason === 'reverts') {
    return new ApiError('transaction_execution_failure', `the transaction would revert: ${shown}`);
  }
  return new ApiError('transaction_broadcast_failure', `the chain refused the transaction: ${shown}`);
}
