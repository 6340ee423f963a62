import { assetAtAddress, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import type { KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError, disagreementOf } from '../../../errors.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';

type AskContext = Pick<OperationContext, 'chains'>;

/**
 * Returns the configured chain with this name.
 *
 * @throws ApiError not_supported when the server has no such chain.
 */
export function requireKnownChain({ chains }: AskContext, { name, caip2 }: KnownChain): AnyChain {
  const chain = chains.find(caip2);
  if (chain === undefined)
    throw new ApiError('not_supported', `the chain \`${name}\` is not configured here`);
  return chain;
}

/**
 * Awaits a query to a chain and translates its failure.
 *
 * @throws ApiError unavailable when the chain cannot be reached or its nodes disagree. An ApiError passes unchanged.
 */
export async function readChain<T>(question: Promise<T>, { name }: KnownChain): Promise<T> {
  try {
    return await question;
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const message = disagreementOf(cause) ?? `the chain \`${name}\` could not be reached`;
    throw new ApiError('unavailable', message, { cause });
  }
}

// keccak256("decimals()")[0..4]
const DECIMALS_CALL = new Uint8Array([0x31, 0x3c, 0xe5, 0x67]);
const WORD_BYTES = 32;
/** ERC-20 declares `decimals` a uint8. */
const MAX_DECIMALS = 255n;

/**
 * Finds the token at an address. The decimals of a token without a name in the API come from the chain, whose nodes
 * must agree.
 *
 * CHOICE: such a token is identified by its address. Its smart contract may state a symbol, but anyone can deploy a
 * smart contract with the symbol USDC.
 *
 * @param tokenAddress in the notation of the chain type.
 * @throws ApiError not_supported when the chain is not configured or has no token there. Rejects with the port's error
 * when the chain cannot be reached.
 */
export async function findToken(
  context: Pick<OperationContext, 'chains'>,
  chain: KnownChain,
  tokenAddress: string,
): Promise<KnownAsset> {
  const known = assetAtAddress(chain, tokenAddress);
  if (known !== undefined) return known;
  const decimals = await decimalsOf(requireKnownChain(context, chain), tokenAddress);
  if (decimals === undefined) {
    throw new ApiError('not_supported', `no readable token at \`${tokenAddress}\` on \`${chain.name}\``);
  }
  return { asset: tokenAddress, chain, tokenAddress, decimals };
}

async function decimalsOf(chain: AnyChain, tokenAddress: string): Promise<number | undefined> {
  if (chain.kind === 'evm') {
    const word = await chain.read({ to: tokenAddress, data: DECIMALS_CALL, isConstant: true });
    if (word.length !== WORD_BYTES) return undefined;
    const decimals = word.reduce((value, byte) => value * 256n + BigInt(byte), 0n);
    return decimals > MAX_DECIMALS ? undefined : Number(decimals);
  }
  return chain.kind === 'solana' ? (await chain.mint(tokenAddress))?.decimals : undefined;
}
