import { readDecimal, toRaw } from '../../../assets/decimal.ts';
import type { KnownAsset } from '../../../assets/known-assets.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { CreateFiatPayoutRequest } from '../../../generated/schemas.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { requireWalletAsset } from '../fiat-accounts/wallet-asset.ts';
import { transferSenders } from '../wallet-actions/transfer-senders.ts';

/** A payout as requested, with everything checked that needs no call outside. */
export interface PayoutTerms {
  readonly asset: KnownAsset;
  /** In base units, above 0. */
  readonly rawAmount: bigint;
  readonly accountId: string;
}

/**
 * Reads the body of a payout.
 *
 * @throws ApiError invalid_data; not_supported.
 */
export function readPayout(wallet: WalletRow, { source, destination }: CreateFiatPayoutRequest): PayoutTerms {
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no payouts from here yet');
  }
  const asset = requireWalletAsset(wallet, source, '/source');
  const { chain } = asset;
  if (transferSenders[chain.chainType] === undefined) {
    throw new ApiError('not_supported', `/source/chain: no payouts on \`${chain.name}\` yet`);
  }
  const amount = readDecimal(source.amount);
  if (amount === undefined || amount.digits === 0n) {
    throw invalidField('/source/amount', 'expected a decimal number above 0');
  }
  const rawAmount = toRaw(amount, asset.decimals);
  if (rawAmount === undefined) {
    throw invalidField('/source/amount', `\`${asset.asset}\` has ${asset.decimals} decimals at most`);
  }
  return { asset, rawAmount, accountId: destination.fiat_account_id };
}

/**
 * The action that policies evaluate: the body with every field in every spelling.
 *
 * CHOICE: no rule method names payouts, so only `*` rules match them; their conditions see this body.
 */
export function payoutAction(
  { source, destination }: CreateFiatPayoutRequest,
  { asset, rawAmount }: PayoutTerms,
): PolicyAction {
  const { chain, tokenAddress } = asset;
  const requestBody = {
    amount: source.amount,
    raw_amount: String(rawAmount),
    source: {
      ...source,
      ...(tokenAddress === null ? {} : { asset_address: tokenAddress }),
      caip2: chain.caip2,
      raw_amount: String(rawAmount),
    },
    destination,
  };
  return { method: 'payout', units: [{ label: 'payout', requestBody }] };
}
