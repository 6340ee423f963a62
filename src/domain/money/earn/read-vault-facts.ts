import type { KnownChain } from '../../../assets/known-chains.ts';
import { invalidField } from '../../../errors.ts';
import type { Services } from '../../../operation-context.ts';
import { checksumAddress } from '../../../signing/ethereum/address.ts';
import { findToken } from '../../access/chains/find-token.ts';
import { callChain } from '../sending/call-chain.ts';
import type { VaultFacts } from './add-vault.ts';
import { askAsset, requireVaultChain } from './read-vault.ts';

/**
 * Reads what a vault accepts. Call it outside any database transaction.
 *
 * @throws ApiError invalid_data when no vault is at the address; not_supported; transaction_broadcast_failure.
 */
export async function readVaultFacts(
  services: Pick<Services, 'chains'>,
  chain: KnownChain,
  address: string,
): Promise<VaultFacts> {
  const evm = requireVaultChain(services, chain);
  const asset = await callChain(askAsset(evm, address));
  if (asset === undefined)
    throw invalidField('/address', `expected the address of a vault, got \`${address}\``);
  const assetAddress = checksumAddress(asset.slice(2));
  const token = await callChain(findToken(services, chain, assetAddress));
  // CHOICE: an asset without a name in the contract is shown by the beginning of its address.
  const assetSymbol = token.asset === assetAddress ? assetAddress.slice(0, 8) : token.asset.toUpperCase();
  return { assetAddress, assetSymbol, assetDecimals: token.decimals };
}
