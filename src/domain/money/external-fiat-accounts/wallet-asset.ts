import { assetNamed, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import { chainNamed, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError } from '../../../errors.ts';
import type { FiatProvider } from '../../../ports/fiat.ts';
import type { PlanContext } from '../../../ports/operation-context.ts';
import { loadQuorums } from '../../access/owners/owner-quorums.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { FiatEntity } from '../fiat-customers/find-customer.ts';

/**
 * Finds the asset that a body names, on a chain of the wallet's type.
 *
 * @param at JSON pointer to the object with `asset` and `chain`.
 * @throws ApiError not_supported
 */
export function requireWalletAsset(
  wallet: Pick<WalletRow, 'chain_type' | 'custody_chain'>,
  named: { readonly asset: string; readonly chain: string },
  at: string,
): KnownAsset {
  const chain = chainNamed(named.chain);
  if (chain === undefined) {
    throw notSupported(`${at}/chain`, `the chain \`${named.chain}\` is not supported`);
  }
  if (chain.chainType !== wallet.chain_type) {
    throw notSupported(`${at}/chain`, `\`${chain.name}\` is not a chain of ${wallet.chain_type} wallets`);
  }
  if (wallet.custody_chain !== null && wallet.custody_chain !== chain.name) {
    throw notSupported(`${at}/chain`, `the custodian holds this wallet on \`${wallet.custody_chain}\``);
  }
  const asset = assetNamed(chain, named.asset);
  if (asset === undefined) {
    throw notSupported(`${at}/asset`, `no asset \`${named.asset}\` is known on \`${chain.name}\``);
  }
  return asset;
}

/**
 * Refuses a network that the provider does not serve, because money sent there would be lost.
 *
 * @param pointer JSON pointer to the field that the client can change.
 * @throws ApiError not_supported
 */
export function requireNetwork(
  { networks }: Pick<FiatProvider, 'networks'>,
  chain: KnownChain,
  pointer: string,
): void {
  if (networks === 'all' || chain.isTestnet === (networks === 'test')) return;
  throw notSupported(
    pointer,
    `this environment works with ${networks} networks only, and \`${chain.name}\` is not one`,
  );
}

function notSupported(pointer: string, message: string): ApiError {
  return new ApiError('not_supported', `${pointer}: ${message}`);
}

/**
 * Returns the user or organization to which a wallet belongs.
 *
 * CHOICE: a wallet without an assigned entity belongs to the user who is its only owner.
 *
 * @throws ApiError invalid_state for a wallet that belongs to neither.
 */
export async function requireWalletEntity(
  context: Pick<PlanContext, 'app' | 'em' | 'nowMs'>,
  wallet: WalletRow,
): Promise<FiatEntity> {
  const { entity_type: type, entity_id: id, owner_id: ownerId } = wallet;
  if (id !== null) return { type: type as FiatEntity['type'], id };
  const owner = ownerId === null ? undefined : (await loadQuorums(context, [ownerId])).get(ownerId);
  const members =
    owner === undefined ? 0 : owner.publicKeys.length + owner.users.length + owner.quorums.length;
  const user = owner?.users[0];
  if (members === 1 && user !== undefined) return { type: 'user', id: user.userId };
  throw new ApiError('invalid_state', 'the wallet belongs to no user and no organization');
}
