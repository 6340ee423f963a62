import { assetNamed, type KnownAsset } from '../../../assets/known-assets.ts';
import { chainOfCaip2 } from '../../../assets/known-chains.ts';
import { ApiError, notFound } from '../../../errors.ts';
import type { CreateCardRequest } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import type { CardIssuer } from '../../../ports/card-issuers.ts';
import { loadQuorums } from '../../access/owners/load-quorums.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { requireNetwork } from '../fiat-accounts/wallet-asset.ts';
import { requireCardUser } from './find-issuer.ts';

/** The only asset that cards spend: its units are the cents of the issuer's currency. */
const CARD_ASSET = 'usdc';

/**
 * A wallet of the user.
 *
 * CHOICE: the user owns a wallet whose owner's signature the user alone can make. All other wallets do not exist for
 * the user.
 *
 * @throws ApiError not_found
 */
export async function findOwnWallet(
  context: Pick<PlanContext, 'app' | 'em' | 'nowMs' | 'proof'>,
  walletId: string,
): Promise<WalletRow> {
  const userId = requireCardUser(context);
  const wallet = await findWallet(context, walletId);
  const ownerId = wallet.owner_id;
  const owner = ownerId === null ? undefined : (await loadQuorums(context, [ownerId])).get(ownerId);
  const isMember = owner?.users.some((user) => user.userId === userId) === true;
  const members =
    owner === undefined ? 0 : owner.publicKeys.length + owner.users.length + owner.quorums.length;
  if (!isMember || (owner?.threshold ?? members) !== 1) throw notFound('Wallet');
  return wallet;
}

/**
 * The asset of a new card, which the issuer must serve and the wallet must be able to hold.
 *
 * @throws ApiError not_supported
 */
export function requireCardAsset(
  issuer: Pick<CardIssuer, 'networks'>,
  wallet: WalletRow,
  { asset, chain_id: caip2 }: Pick<CreateCardRequest, 'asset' | 'chain_id'>,
): KnownAsset & { readonly tokenAddress: string } {
  const chain = chainOfCaip2(caip2);
  // Only contracts of EVM chains have approved spenders.
  if (chain?.chainType !== 'ethereum') throw notSupported('/chain_id', `no cards spend on \`${caip2}\``);
  if (wallet.chain_type !== 'ethereum' || wallet.custody_provider !== null) {
    throw notSupported('/wallet_id', 'expected an `ethereum` wallet without a custodian');
  }
  requireNetwork(issuer, chain, '/environment');
  const known = asset === CARD_ASSET ? assetNamed(chain, asset) : undefined;
  if (known === undefined || known.tokenAddress === null) {
    throw notSupported('/asset', `cards spend \`${CARD_ASSET}\` only, where the chain has it`);
  }
  return { ...known, tokenAddress: known.tokenAddress };
}

function notSupported(pointer: string, message: string): ApiError {
  return new ApiError('not_supported', `${pointer}: ${message}`);
}
