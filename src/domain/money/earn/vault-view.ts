import { type Decimal, decimalText, fromRaw, multiply, readDecimal, round } from '../../../assets/decimal.ts';
import { assetAtAddress } from '../../../assets/known-assets.ts';
import type { EthereumEarnVaultDetailsResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import type { VaultRate } from '../../../ports/earn.ts';
import { readChain, requireKnownChain } from '../../access/chains/ask-chains.ts';
import { chainOfVault, type EarnVault } from './find-vault.ts';
import { askFees, askVault } from './read-vault.ts';

/** A vault in wire form, with what its contract says now. @throws ApiError not_supported; unavailable. */
export async function readVaultView(
  context: OperationContext,
  vault: EarnVault,
): Promise<EthereumEarnVaultDetailsResponse> {
  const known = chainOfVault(vault);
  const chain = requireKnownChain(context, known) as EvmChain;
  const [total, [held = 0n], fees] = await readChain(
    Promise.all([
      askVault(chain, vault, 'totalAssets'),
      chain.balances(vault.address, [vault.assetAddress]),
      vault.provider === 'aave' ? askFees(chain, vault) : 0n,
    ]),
    known,
  );
  const price = await priceOf(context, vault);
  const rate = await context.vaultRates?.rateOf(vault.caip2, vault.address);
  const worth = (rawAmount: bigint | undefined): number | null =>
    rawAmount === undefined || price === undefined
      ? null
      : Number(decimalText(round(multiply(fromRaw(rawAmount, vault.assetDecimals), price), 2)));
  return {
    id: vault.id,
    provider: vault.provider,
    name: vault.name,
    vault_address: vault.address,
    caip2: vault.caip2,
    asset: assetView(vault),
    admin_wallet_id: vault.adminWalletId,
    admin_wallet_address: vault.adminAddress,
    tvl_usd: worth(total),
    available_liquidity_usd: worth(total === undefined ? undefined : held - (fees ?? 0n)),
    user_apy: rate === undefined ? null : userApyOf(rate),
    app_apy: rate === undefined ? null : (rate.apyBps * rate.feeBps) / 10_000,
    ...(vault.provider === 'aave' ? { available_fees: String(fees ?? 0n) } : {}),
    // Rewards are paid per account, so a vault has no rate of them.
    ...(vault.provider === 'morpho' ? { total_rewards_apr: 0 } : {}),
  } as EthereumEarnVaultDetailsResponse;
}

export function assetView({ assetAddress, assetSymbol, assetDecimals }: EarnVault) {
  return { address: assetAddress, symbol: assetSymbol, decimals: assetDecimals };
}

/** What depositors earn a year, in hundredths of a percent. */
export function userApyOf({ apyBps, feeBps }: VaultRate): number {
  return (apyBps * (10_000 - feeBps)) / 10_000;
}

/** US dollars for one unit; undefined for assets without a name or price, and on test networks. */
async function priceOf({ prices }: OperationContext, vault: EarnVault): Promise<Decimal | undefined> {
  const chain = chainOfVault(vault);
  const asset = assetAtAddress(chain, vault.assetAddress)?.asset;
  if (asset === undefined || chain.isTestnet) return undefined;
  return readDecimal((await prices.inUsd([asset])).get(asset) ?? '');
}
