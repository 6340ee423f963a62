import { type EarnAmount, readEarnAmount } from '../../../actions/earn-terms.ts';
import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import { assetAtAddress } from '../../../assets/known-assets.ts';
import { ApiError } from '../../../errors.ts';
import type { EarnRequest } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { refusingTerms } from '../../base/actions/refused-terms.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { chainOfVault, type EarnVault, findNamedVault } from './find-vault.ts';

/** A deposit or withdrawal as requested, with everything checked that needs no chain. */
export interface EarnTerms extends EarnAmount {
  readonly vault: EarnVault;
}

/** @throws ApiError not_supported for a wallet that cannot use vaults. */
export function requireEarnWallet({ chain_type: chainType, custody_provider: custodian }: WalletRow): void {
  if (custodian !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no vault calls from here');
  }
  if (chainType !== 'ethereum') {
    throw new ApiError('not_supported', `expected a wallet of type \`ethereum\`, got \`${chainType}\``);
  }
}

/** @throws ApiError not_supported; invalid_data naming the field. */
export async function readEarnBody(
  context: Pick<PlanContext, 'em' | 'app'>,
  wallet: WalletRow,
  body: EarnRequest,
): Promise<EarnTerms> {
  requireEarnWallet(wallet);
  const vault = await findNamedVault(context, body.vault_id);
  return { vault, ...refusingTerms(() => readEarnAmount(body, vault.assetDecimals)) };
}

/** The wire fields that all actions of a vault have. */
export function vaultFields(vault: EarnVault, rawAmount: bigint): object {
  const known = assetAtAddress(chainOfVault(vault), vault.assetAddress);
  return {
    vault_id: vault.id,
    vault_address: vault.address,
    asset_address: vault.assetAddress,
    caip2: vault.caip2,
    raw_amount: String(rawAmount),
    amount: decimalText(fromRaw(rawAmount, vault.assetDecimals)),
    ...(known === undefined ? {} : { asset: known.asset }),
    decimals: vault.assetDecimals,
  };
}
