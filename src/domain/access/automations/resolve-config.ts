import { invalidField } from '../../../errors.ts';
import type {
  AutomationAssetFilter,
  AutomationAssetFilterInput,
  AutomationAssetSpec,
  AutomationAssetSpecInput,
  AutomationConfig,
  AutomationConfigInput,
} from '../../../generated/schemas.ts';
import { readChainAddress } from '../chains/chain-address.ts';
import { assetNamed } from '../chains/known-assets.ts';
import { chainNamed, chainOfCaip2, type KnownChain } from '../chains/known-chains.ts';

/** How the contract names the native asset where it expects a token's address. */
export const NATIVE = 'native';

/**
 * The configuration as it is stored and shown: every asset by its address and CAIP-2 id.
 *
 * @param pointer of the configuration in the body.
 * @throws ApiError invalid_data naming the field.
 */
export function resolveConfig({ trigger, action }: AutomationConfigInput, pointer: string): AutomationConfig {
  const assets = resolveFilter(trigger.assets, `${pointer}/trigger/assets`);
  if (action.type === 'earn_deposit') {
    throw invalidField(
      `${pointer}/action/vault_id`,
      `expected the id of a vault, got \`${action.vault_id}\``,
    );
  }
  const destination = resolveAsset(
    action.destination_chain_asset,
    `${pointer}/action/destination_chain_asset`,
  );
  return {
    trigger: { type: 'deposit', assets },
    action: { type: 'swap', destination_chain_asset: destination },
  };
}

function resolveFilter(filter: AutomationAssetFilterInput, pointer: string): AutomationAssetFilter {
  if (filter.mode === 'all') return { mode: 'all' };
  const { mode } = filter;
  return {
    mode,
    values: filter.values.map((spec, index) => resolveAsset(spec, `${pointer}/values/${index}`)),
  };
}

function resolveAsset(spec: AutomationAssetSpecInput, pointer: string): AutomationAssetSpec {
  const chain = resolveChain(spec, pointer);
  const { asset, asset_address: address } = spec;
  if ((asset === undefined) === (address === undefined)) {
    throw invalidField(pointer, 'expected either `asset` or `asset_address`');
  }
  const assetAddress =
    asset === undefined
      ? addressOn(chain, address!, `${pointer}/asset_address`)
      : addressOfName(chain, asset, `${pointer}/asset`);
  return { asset_address: assetAddress, caip2: chain.caip2 };
}

function resolveChain({ chain: name, caip2 }: AutomationAssetSpecInput, pointer: string): KnownChain {
  if ((name === undefined) === (caip2 === undefined)) {
    throw invalidField(pointer, 'expected either `chain` or `caip2`');
  }
  const chain = name === undefined ? chainOfCaip2(caip2!) : chainNamed(name);
  if (chain !== undefined) return chain;
  const [field, given] = name === undefined ? ['caip2', caip2] : ['chain', name];
  throw invalidField(`${pointer}/${field}`, `expected a known chain, got \`${given}\``);
}

function addressOfName(chain: KnownChain, asset: string, pointer: string): string {
  const known = assetNamed(chain, asset);
  if (known === undefined) {
    throw invalidField(pointer, `expected the name of an asset on \`${chain.name}\`, got \`${asset}\``);
  }
  return known.tokenAddress ?? NATIVE;
}

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

/** Whether a deposit of the asset triggers an automation with this filter. */
export function matchesFilter(filter: AutomationAssetFilter, asset: AutomationAssetSpec): boolean {
  if (filter.mode === 'all') return true;
  const isListed = filter.values.some((each) => isSameAsset(each, asset));
  return filter.mode === 'include' ? isListed : !isListed;
}

/** EVM addresses are stored in checksum case, so text is enough. */
export function isSameAsset(left: AutomationAssetSpec, right: AutomationAssetSpec): boolean {
  return left.caip2 === right.caip2 && left.asset_address === right.asset_address;
}
