import { ApiError, invalidField } from '../../errors.ts';
import type { Gas } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import { decimalText, fromRaw, toRaw } from '../balances/decimal.ts';
import { findToken } from '../chains/find-token.ts';
import type { KnownAsset } from '../chains/known-assets.ts';
import type { KnownChain } from '../chains/known-chains.ts';
import { askChain } from '../sending/ask-chain.ts';
import type { BuiltTransaction } from '../sending/built-transaction.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import { transferSenders } from './transfer-senders.ts';
import type { TransferTerms } from './transfer-terms.ts';

/** A transfer with everything that had to be asked of its chain. */
export interface TransferPlan {
  readonly asset: KnownAsset;
  /** In base units. */
  readonly rawAmount: bigint;
  readonly estimatedGas: Gas | null;
  /** Fixes the bytes, inside the transaction that signs them. */
  build(context: OperationContext): Promise<BuiltTransaction>;
}

/**
 * Asks the chain what a transfer needs, and whether the wallet can afford it. Outside of any transaction where that is
 * possible.
 *
 * @throws ApiError invalid_data for an amount finer than the asset; not_supported; insufficient_funds;
 * transaction_execution_failure when the chain would not carry it out; transaction_broadcast_failure when it cannot be
 * reached.
 */
export async function planTransfer(
  context: OperationContext,
  wallet: WalletRow,
  terms: TransferTerms,
): Promise<TransferPlan> {
  const { source } = terms;
  if (terms.isExchange) {
    // CHOICE: no bridge and no exchange is connected yet, and a made-up one would move nothing.
    throw new ApiError('not_supported', '/destination: nobody here exchanges assets or bridges chains');
  }
  const { chain } = source;
  const sender = transferSenders[chain.chainType];
  if (sender === undefined) {
    throw new ApiError('not_supported', `/source/chain: no transfers on \`${chain.name}\` yet`);
  }
  const known = context.chains.find(chain.caip2);
  if (known === undefined) {
    throw new ApiError('not_supported', `/source/chain: the chain \`${chain.name}\` is not configured here`);
  }
  const asset = 'asset' in source ? source : await askChain(findToken(context, chain, source.tokenAddress));
  const rawAmount = toRaw(terms.amount, asset.decimals);
  if (rawAmount === undefined) {
    throw invalidField('/source/amount', `\`${asset.asset}\` has ${asset.decimals} decimals at most`);
  }
  const [balance = 0n] = await askChain(known.balances(wallet.address, [asset.tokenAddress]));
  if (balance < rawAmount) throw new ApiError('insufficient_funds');
  const order = { asset, rawAmount, from: wallet.address, to: terms.destination };
  const { estimatedFee, build } = await sender(context, order);
  return { asset, rawAmount, estimatedGas: gasOf(chain, estimatedFee), build };
}

/** What the network takes, as the contract tells it; null where gas is not paid in a native asset. */
export function gasOf({ native }: KnownChain, fee: bigint): Gas | null {
  if (native === undefined) return null;
  return {
    amount: decimalText(fromRaw(fee, native.decimals)),
    base_amount: fee.toString(),
    gas_asset: native.asset,
  };
}
