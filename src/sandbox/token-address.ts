import { assetNamed } from '../assets/known-assets.ts';
import { chainOfCaip2 } from '../assets/known-chains.ts';
import { invalidField } from '../errors.ts';

/** The token address, given directly or by asset name; null for the native asset. Throws ApiError invalid_data. */
export function tokenAddressOf(
  caip2: string,
  body: { readonly asset?: string | undefined; readonly token_address?: string | null | undefined },
): string | null {
  const { asset, token_address: tokenAddress } = body;
  if (asset === undefined) return tokenAddress ?? null;
  if (tokenAddress !== undefined) throw invalidField('/asset', 'expected either `asset` or `token_address`');
  const chain = chainOfCaip2(caip2);
  const known = chain && assetNamed(chain, asset);
  if (known === undefined) {
    throw invalidField('/asset', `\`${asset}\` has no known address on this chain; use \`token_address\``);
  }
  return known.tokenAddress;
}
