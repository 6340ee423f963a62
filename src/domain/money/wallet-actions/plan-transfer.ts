import assert from 'node:assert/strict';
import { ApiError } from '../../../errors.ts';
import type { Gas } from '../../../generated/schemas.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { findToken } from '../../access/chains/find-token.ts';
import type { KnownAsset } from '../../access/chains/known-assets.ts';
import type { KnownChain } from '../../access/chains/known-chains.ts';
import { decimalText, fromRaw } from '../../wallets/balances/decimal.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { askChain } from '../sending/ask-chain.ts';
import type { BuiltTransaction } from '../sending/built-transaction.ts';
import { type PlannedExchange, planExchange, requireRaw } from './plan-exchange.ts';
import { type PlannedTransfer, type TransferOrder, transferSenders } from './transfer-senders.ts';
import type { TransferTerms } from './transfer-terms.ts';

/** A transfer with everything that had to be asked of its chain. */
export interface TransferPlan {
  readonly asset: KnownAsset;
  /** In base units. */
  readonly rawAmount: bigint;
  readonly estimatedGas: Gas | null;
  /** For which this transfer is the deposit. */
  readonly exchange: PlannedExchange | undefined;
  /** Fixes the bytes, inside the transaction that signs them. */
  build(context: OperationContext): Promise<BuiltTransaction>;
}

/**
 * Asks the chain what a transfer needs, and whether the wallet can afford it. Outside of any transaction where that is
 * possible.
 *
 * @throws ApiError invalid_data for an amount finer than the asset; not_supported; what `planExchange` throws;
 * insufficient_funds; transaction_execution_failure when the chain would not carry it out; transaction_broadcast_failure when it cannot be
 * reached.
 */
export async function planTransfer(
  context: PreparationContext,
  wallet: WalletRow,
  terms: TransferTerms,
): Promise<TransferPlan> {
  const { chain } = terms.source;
  const known = requireSource(context, terms);
  const exchange = terms.isExchange ? await planExchange(context, wallet, terms) : undefined;
  const { asset, rawAmount, to } =
    exchange === undefined ? await readPlain(context, terms) : depositOf(exchange);
  const [balance = 0n] = await askChain(known.balances(wallet.address, [asset.tokenAddress]));
  if (balance < rawAmount) throw new ApiError('insufficient_funds');
  const order = { asset, rawAmount, from: wallet.address, to };
  const { estimatedFee, build } = await planSending(context, order);
  return { asset, rawAmount, exchange, estimatedGas: gasOf(chain, estimatedFee), build };
}

/** What goes to the exchange. */
export function depositOf({ source, quote }: PlannedExchange): Omit<TransferOrder, 'from'> {
  return { asset: source, rawAmount: quote.rawInput, to: quote.depositAddress };
}

/** Asks the chain what moving an asset on it needs. */
export function planSending(context: PreparationContext, order: TransferOrder): Promise<PlannedTransfer> {
  const { chain } = order.asset;
  const sender = transferSenders[chain.chainType];
  assert(sender !== undefined, `transfers on ${chain.name} were refused before`);
  return sender(context, order);
}

/**
 * The source chain, on which transfers must be possible.
 *
 * @throws ApiError not_supported
 */
export function requireSource(context: PreparationContext, { source }: TransferTerms): AnyChain {
  const { chain } = source;
  if (transferSenders[chain.chainType] === undefined) {
    throw new ApiError('not_supported', `/source/chain: no transfers on \`${chain.name}\` yet`);
  }
  const known = context.chains.find(chain.caip2);
  if (known === undefined) {
    throw new ApiError('not_supported', `/source/chain: the chain \`${chain.name}\` is not configured here`);
  }
  return known;
}

async function readPlain(
  context: PreparationContext,
  terms: TransferTerms,
): Promise<Omit<TransferOrder, 'from'>> {
  const { source, amount, amountPointer, destination } = terms;
  const asset =
    'asset' in source ? source : await askChain(findToken(context, source.chain, source.tokenAddress));
  return { asset, rawAmount: requireRaw(asset, amount, amountPointer), to: destination };
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
