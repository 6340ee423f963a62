import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { Gas, QuoteWalletTransferRequest, TransferQuoteResponse } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { requireOwner } from '../../access/owners/require-owner.ts';
import { signersOf } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { feesOf, type PlannedExchange, planExchange } from './plan-exchange.ts';
import { estimateDepositGas, requireSource } from './plan-transfer.ts';
import { readTransfer } from './read-transfer.ts';

export interface QuotePlan {
  readonly exchange: PlannedExchange;
  readonly gas: Gas | null;
}

export interface QuoteInput {
  readonly walletId: string;
  readonly body: QuoteWalletTransferRequest;
  /** From `prepareQuote`. */
  readonly planned: Planned<QuotePlan>;
}

/**
 * Quotes a transfer that arrives as another asset or on another chain.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; invalid_data for a plain transfer; not_supported; what
 * `planExchange` throws.
 */
export async function quoteWalletTransfer(
  context: OperationContext,
  { walletId, body, planned }: QuoteInput,
): Promise<TransferQuoteResponse> {
  const wallet = await findWallet(context, walletId);
  await requireOwner(context, { ownerId: wallet.owner_id, signers: signersOf(wallet) });
  const { exchange, gas } = unwrapPlan(planned);
  const { source, destination, quote } = exchange;
  return {
    source: body.source,
    destination: body.destination,
    amount_type: body.amount_type ?? 'exact_input',
    estimated_input_amount: decimalText(fromRaw(quote.rawInput, source.decimals)),
    estimated_output_amount: decimalText(fromRaw(quote.rawOutput, destination.decimals)),
    estimated_fees: feesOf(exchange),
    ...(gas === null ? {} : { estimated_gas: gas }),
    expires_at: quote.expiresAtSeconds,
  };
}

/**
 * Queries the exchange and the chain.
 *
 * @throws what the verb throws for a quote that cannot be given.
 */
export async function prepareQuote(
  context: PlanContext,
  walletId: string,
  body: QuoteWalletTransferRequest,
): Promise<QuotePlan> {
  const wallet = await findWallet(context, walletId);
  const terms = readTransfer(wallet, body);
  if (!terms.isExchange) {
    throw invalidField('/destination', 'a plain transfer needs no quote: expected another asset or chain');
  }
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no transfers from here yet');
  }
  requireSource(context, terms);
  const exchange = await planExchange(context, wallet, terms);
  return { exchange, gas: await estimateDepositGas(context, wallet, exchange) };
}
