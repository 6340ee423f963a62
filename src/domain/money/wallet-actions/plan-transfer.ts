import assert from 'node:assert/strict';
import type { TransferTerms } from '../../../actions/transfer-terms.ts';
import type { KnownAsset } from '../../../assets/known-assets.ts';
import { ApiError } from '../../../errors.ts';
import type { Gas } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { findToken } from '../../access/chains/find-token.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { BuiltTransaction } from '../sending/built-transaction.ts';
import { callChain, insufficientFunds } from '../sending/call-chain.ts';
import { gasOf } from './outcomes.ts';
import { type PlannedExchange, planExchange, requireRaw } from './plan-exchange.ts';
import { type PlannedTransfer, type TransferOrder, transferSenders } from './transfer-senders.ts';

/** A transfer with all the chain data it needs. */
export interface TransferPlan {
  readonly asset: KnownAsset;
  /** In base units. */
  readonly rawAmount: bigint;
  readonly estimatedGas: Gas | null;
  /** The exchange that this transfer pays the deposit of. */
  readonly exchange: PlannedExchange | undefined;
  /** Builds the bytes, inside the database transaction that signs them. */
  build(context: OperationContext): Promise<BuiltTransaction>;
}

/**
 * Queries the chain for what a transfer needs, and checks that the wallet can afford it. Call it outside any database
 * transaction.
 *
 * @throws ApiError invalid_data for an amount finer than the asset; not_supported; what `planExchange` throws;
 * insufficient_funds; transaction_execution_failure when the simulation fails; transaction_broadcast_failure when the
 * chain cannot be reached.
 */
export async function planTransfer(
  context: PlanContext,
  wallet: WalletRow,
  terms: TransferTerms,
): Promise<TransferPlan> {
  const { chain } = terms.source;
  const known = requireSource(context, terms);
  const exchange = terms.isExchange ? await planExchange(context, wallet, terms) : undefined;
  const { asset, rawAmount, to } =
    exchange === undefined ? await readPlain(context, terms) : depositOf(exchange);
  const [balance = 0n] = await callChain(known.balances(wallet.address, [asset.tokenAddress]));
  if (balance < rawAmount) {
    const { tokenAddress } = asset;
    const payer = { caip2: chain.caip2, address: wallet.address, tokenAddress };
    throw insufficientFunds({ ...payer, needed: rawAmount, balance });
  }
  const order = { asset, rawAmount, from: wallet.address, to };
  const { estimatedFee, build } = await planSending(context, order);
  return { asset, rawAmount, exchange, estimatedGas: gasOf(chain, estimatedFee), build };
}

/** The deposit to the exchange. */
export function depositOf({ source, quote }: PlannedExchange): Omit<TransferOrder, 'from'> {
  return { asset: source, rawAmount: quote.rawInput, to: quote.depositAddress };
}

/** Queries the chain for what moving an asset needs. */
export function planSending(context: PlanContext, order: TransferOrder): Promise<PlannedTransfer> {
  const { chain } = order.asset;
  const sender = transferSenders[chain.chainType];
  assert(sender !== undefined, `transfers on ${chain.name} were refused before`);
  return sender(context, order);
}

/**
 * The source chain, which must support transfers.
 *
 * @throws ApiError not_supported
 */
export function requireSource(context: PlanContext, { source }: TransferTerms): AnyChain {
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

async function readPlain(context: PlanContext, terms: TransferTerms): Promise<Omit<TransferOrder, 'from'>> {
  const { source, amount, amountPointer, destination } = terms;
  const asset =
    'asset' in source ? source : await callChain(findToken(context, source.chain, source.tokenAddress));
  return { asset, rawAmount: requireRaw(asset, amount, amountPointer), to: destination };
}

/** The gas of the deposit; null when it cannot be simulated because the wallet lacks the funds. */
export async function estimateDepositGas(
  context: PlanContext,
  wallet: WalletRow,
  exchange: PlannedExchange,
): Promise<Gas | null> {
  try {
    const { estimatedFee } = await planSending(context, { ...depositOf(exchange), from: wallet.address });
    return gasOf(exchange.source.chain, estimatedFee);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
