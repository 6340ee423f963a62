import { readChainAddress } from '../../../assets/chain-address.ts';
import { assetAtAddress } from '../../../assets/known-assets.ts';
import { chainOfCaip2, type KnownChain } from '../../../assets/known-chains.ts';
import { invalidField } from '../../../errors.ts';
import type { AutomationAssetFilter, AutomationAssetSpec } from '../../../generated/schemas.ts';

/** How the contract names the native asset where it expects a token's address. */
export const NATIVE = 'native';

/**
 * `native`, or the address of a token as the chain type writes it.
 *
 * @throws ApiError invalid_data naming the field.
 */
export function addressOn(chain: KnownChain, address: string, pointer: string): string {
  const read = address === NATIVE ? chain.native && NATIVE : readChainAddress(chain.chainType, address);
  if (read !== undefined) return read;
  throw invalidField(
    pointer,
    `expected the address of a token on \`${chain.name}\`${chain.native ? ' or `native`' : ''}, got \`${address}\``,
  );
}

/**
 * Whether a deposit of the asset triggers an automation with this filter.
 *
 * CHOICE: `all` and `exclude` cover the native asset and the tokens that have a name here. Anyone can make a token whose
 * transfer burns gas, and send it; a token without a name is covered by `include` only.
 */
export function matchesFilter(filter: AutomationAssetFilter, asset: AutomationAssetSpec): boolean {
  if (filter.mode === 'all') return isNamed(asset);
  const isListed = filter.values.some((each) => isSameAsset(each, asset));
  return filter.mode === 'include' ? isListed : !isListed && isNamed(asset);
}

function isNamed({ caip2, asset_address: address }: AutomationAssetSpec): boolean {
  const chain = chainOfCaip2(caip2);
  return address === NATIVE || (chain !== undefined && assetAtAddress(chain, address) !== undefined);
}

/** EVM addresses are stored in checksum case, so text is enough. */
export function isSameAsset(left: AutomationAssetSpec, right: AutomationAssetSpec): boolean {
  return left.caip2 === right.caip2 && left.asset_address === right.asset_address;
}
