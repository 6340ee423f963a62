import { decimalText, fromRaw, readDecimal, toRaw } from '../../../assets/decimal.ts';
import { assetAtAddress } from '../../../assets/known-assets.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { EarnRequest } from '../../../generated/schemas.ts';
import type { PreparationContext } from '../../../operation-context.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { chainOfVault, type EarnVault, findNamedVault } from './find-vault.ts';

/** A deposit or withdrawal as requested, with everything checked that needs no chain. */
export interface EarnTerms {
  readonly vault: EarnVault;
  readonly rawAmount: bigint;
  /** JSON pointer of the amount in the body. */
  readonly pointer: string;
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
  context: Pick<PreparationContext, 'em' | 'app'>,
  wallet: WalletRow,
  body: EarnRequest,
): Promise<EarnTerms> {
  requireEarnWallet(wallet);
  const vault = await findNamedVault(context, body.vault_id);
  if (body.amount !== undefined && body.raw_amount !== undefined) {
    throw invalidField('/raw_amount', 'expected `amount` or `raw_amount`, not both');
  }
  const pointer = body.amount === undefined ? '/raw_amount' : '/amount';
  const rawAmount =
    body.amount === undefined ? readRaw(body.raw_amount) : readUnits(body.amount, vault.assetDecimals);
  if (rawAmount === 0n) throw invalidField(pointer, 'expected an amount above 0');
  if (rawAmount >= 2n ** 256n) throw invalidField(pointer, 'expected an amount below 2^256');
  return { vault, rawAmount, pointer };
}

function readRaw(text: string | undefined): bigint {
  if (text === undefined) throw invalidField('/raw_amount', 'expected `amount` or `raw_amount`');
  return BigInt(text);
}

function readUnits(text: string, decimals: number): bigint {
  const amount = readDecimal(text);
  if (amount === undefined) throw invalidField('/amount', 'expected a decimal number above 0');
  const rawAmount = toRaw(amount, decimals);
  if (rawAmount === undefined) {
    throw invalidField('/amount', `expected at most ${decimals} decimals, as the asset of the vault has`);
  }
  return rawAmount;
}

/**
 * The action that policies evaluate: the body with both spellings of the amount.
 *
 * CHOICE: `amount` is written without superfluous zeros, whichever spelling was sent.
 */
export function earnAction(
  method: 'earn_deposit' | 'earn_withdraw',
  body: EarnRequest,
  { vault, rawAmount }: EarnTerms,
): PolicyAction {
  const requestBody = {
    ...body,
    amount: decimalText(fromRaw(rawAmount, vault.assetDecimals)),
    raw_amount: String(rawAmount),
  };
  return { method, units: [{ label: method, requestBody }] };
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
