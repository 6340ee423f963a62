import type { CreateFiatPayoutRequest } from '../../generated/schemas.ts';
import { readDecimal, toRaw } from '../assets/decimal.ts';
import { assetNamed, type KnownAsset } from '../assets/known-assets.ts';
import { chainNamed, type KnownChain } from '../assets/known-chains.ts';
import type { PolicyAction } from '../policy/action.ts';
import { invalid, notSupported } from './request-terms-error.ts';

/** The terms of a requested payout, after every check that needs no external call. */
export interface PayoutTerms {
  readonly asset: KnownAsset;
  /** The amount in base units, above 0. */
  readonly rawAmount: bigint;
  readonly accountId: string;
  /** The app's fee in percent, as written in the request, or `0`. */
  readonly developerFeePercent: string;
}

/**
 * INVARIANT: this is the pattern of the API document. The signer also reads bodies that no server has validated.
 *
 * CHOICE: a fee has at most 18 decimals.
 */
const DEVELOPER_FEE = /^\d{1,2}(\.\d{1,18})?$/;

/**
 * Reads the body of a payout request.
 *
 * @throws RequestTermsError invalid_data, which names the field; not_supported for an unknown chain, a chain of
 * another wallet type, and an asset that does not exist on the chain.
 */
export function readPayoutTerms(
  chainType: string,
  { source, destination, developer_fee_percent: developerFeePercent = '0' }: CreateFiatPayoutRequest,
): PayoutTerms {
  const asset = requireAssetOn(requireChainOf(chainType, source.chain), source.asset);
  const amount = readDecimal(source.amount);
  if (amount === undefined || amount.digits === 0n) {
    throw invalid('/source/amount', 'expected a decimal number above 0');
  }
  const rawAmount = toRaw(amount, asset.decimals);
  if (rawAmount === undefined) {
    throw invalid('/source/amount', `\`${asset.asset}\` has ${asset.decimals} decimals at most`);
  }
  if (!DEVELOPER_FEE.test(developerFeePercent)) {
    throw invalid('/developer_fee_percent', 'expected a decimal number from 0 to below 100');
  }
  return { asset, rawAmount, accountId: destination.fiat_account_id, developerFeePercent };
}

function requireChainOf(chainType: string, name: string): KnownChain {
  const chain = chainNamed(name);
  if (chain === undefined) throw notSupported('/source/chain', `the chain \`${name}\` is not supported`);
  if (chain.chainType === chainType) return chain;
  throw notSupported('/source/chain', `\`${chain.name}\` is not a chain of ${chainType} wallets`);
}

function requireAssetOn(chain: KnownChain, name: string): KnownAsset {
  const asset = assetNamed(chain, name);
  if (asset !== undefined) return asset;
  throw notSupported('/source/asset', `no asset \`${name}\` is known on \`${chain.name}\``);
}

/**
 * Returns the action that policies evaluate: the body with every field in every spelling.
 *
 * CHOICE: there is no rule method for payouts, so only `*` rules match them. The conditions of these rules see this
 * body.
 */
export function payoutAction(
  { source, destination }: CreateFiatPayoutRequest,
  { asset, rawAmount, developerFeePercent }: PayoutTerms,
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
    developer_fee_percent: developerFeePercent,
  };
  return { method: 'payout', units: [{ label: 'payout', requestBody }] };
}
