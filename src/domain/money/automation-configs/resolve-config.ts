import { assetNamed } from '../../../assets/known-assets.ts';
import { chainNamed, chainOfCaip2, type KnownChain } from '../../../assets/known-chains.ts';
import { invalidField } from '../../../errors.ts';
import type {
  AutomationAssetFilter,
  AutomationAssetFilterInput,
  AutomationAssetSpec,
  AutomationAssetSpecInput,
  AutomationConfig,
  AutomationConfigInput,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { addressOn, isSameAsset, NATIVE } from '../../access/automations/automation-assets.ts';
import { type EarnVault, findNamedVault } from '../earn/find-vault.ts';

/**
 * The configuration as it is stored and shown: every asset by its address and CAIP-2 id.
 *
 * @throws ApiError invalid_data naming the field.
 */
export async function resolveConfig(
  context: Pick<OperationContext, 'app' | 'em'>,
  { trigger, action }: AutomationConfigInput,
): Promise<AutomationConfig> {
  const assets = resolveFilter(trigger.assets, '/config/trigger/assets');
  if (action.type === 'earn_deposit') {
    const vault = await findNamedVault(context, action.vault_id, '/config/action/vault_id');
    requireAssetOf(vault, assets);
    return { trigger: { type: 'deposit', assets }, action: { type: 'earn_deposit', vault_id: vault.id } };
  }
  const pointer = '/config/action/destination_chain_asset';
  const destination = resolveAsset(action.destination_chain_asset, pointer);
  return {
    trigger: { type: 'deposit', assets },
    action: { type: 'swap', destination_chain_asset: destination },
  };
}

/** A vault accepts one asset, so deposits of anything else could only fail. */
function requireAssetOf({ assetAddress, caip2 }: EarnVault, filter: AutomationAssetFilter): void {
  const accepted = { asset_address: assetAddress, caip2 };
  const isExact = filter.mode === 'include' && filter.values.every((each) => isSameAsset(each, accepted));
  if (isExact) return;
  throw invalidField(
    '/config/trigger/assets',
    `expected \`include\` with the asset of the vault, \`${assetAddress}\` on \`${caip2}\``,
  );
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
