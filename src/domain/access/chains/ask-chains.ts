import type { KnownChain } from '../../../assets/known-chains.ts';
import { ApiError, disagreementOf } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';

type AskContext = Pick<OperationContext, 'chains'>;

/** The chain behind a name. @throws ApiError not_supported when it is not configured. */
export function requireKnownChain({ chains }: AskContext, { name, caip2 }: KnownChain): AnyChain {
  const chain = chains.find(caip2);
  if (chain === undefined)
    throw new ApiError('not_supported', `the chain \`${name}\` is not configured here`);
  return chain;
}

/** Awaits a query to a chain. @throws ApiError unavailable when it cannot be reached. */
export async function readChain<T>(question: Promise<T>, { name }: KnownChain): Promise<T> {
  try {
    return await question;
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const message = disagreementOf(cause) ?? `the chain \`${name}\` could not be reached`;
    throw new ApiError('unavailable', message, { cause });
  }
}
