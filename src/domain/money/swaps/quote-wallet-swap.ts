import type { QuoteWalletSwapRequest, SwapQuoteResponse } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { requireOwner } from '../../access/owners/require-owner.ts';
import { signersOf } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { feesOf } from '../wallet-actions/plan-exchange.ts';
import { estimateDepositGas } from '../wallet-actions/plan-transfer.ts';
import { type ExchangeOffer, offerSwap, type RouteOffer, routeApprovals } from './plan-swap.ts';
import { readSwap, type WalletSwap } from './read-swap.ts';

/** The estimate of a swap, in wire form. */
export type SwapEstimate = SwapQuoteResponse;

export interface SwapQuoteInput {
  readonly walletId: string;
  /** From `prepareSwapQuote`. */
  readonly planned: Planned<SwapEstimate>;
}

/**
 * Quotes a swap.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; what `prepareSwapQuote` throws.
 */
export async function quoteWalletSwap(
  context: OperationContext,
  { walletId, planned }: SwapQuoteInput,
): Promise<SwapQuoteResponse> {
  const wallet = await findWallet(context, walletId);
  await requireOwner(context, { ownerId: wallet.owner_id, signers: signersOf(wallet) });
  return unwrapPlan(planned);
}

/**
 * Asks the router or the exchange. The balance of the wallet does not matter.
 *
 * @throws what `readSwap` and `offerSwap` throw.
 */
export async function prepareSwapQuote(
  context: PlanContext,
  walletId: string,
  body: QuoteWalletSwapRequest,
): Promise<SwapEstimate> {
  const wallet = await findWallet(context, walletId);
  const terms = readSwap(wallet, body);
  const offer = await offerSwap(context, wallet, terms);
  const { source, destination } = terms;
  const tokens = {
    caip2: source.chain.caip2,
    ...(destination.chain === source.chain ? {} : { destination_caip2: destination.chain.caip2 }),
    input_token: source.tokenAddress ?? 'native',
    output_token: destination.tokenAddress ?? 'native',
  };
  if (offer.by === 'route') {
    const approvals = await routeApprovals(context, wallet, offer);
    return { ...tokens, ...routeEstimate(offer, approvals.length) };
  }
  const gas = await estimateDepositGas(context, wallet, offer.exchange);
  return {
    ...tokens,
    ...exchangeEstimate(terms, offer),
    ...(gas === null ? {} : { estimated_gas: gas }),
  };
}

// CHOICE: a quote is not simulated, because the wallet need not hold the input yet. Gas of common token contracts.
const APPROVAL_GAS = 50_000n;
const TOKEN_TRANSFER_GAS = '65000';
const NATIVE_TRANSFER_GAS = '21000';

function routeEstimate({ route }: RouteOffer, approvals: number) {
  return {
    input_amount: String(route.rawInput),
    est_output_amount: String(route.rawOutput),
    minimum_output_amount: String(route.rawOutputMin),
    gas_estimate: String(route.gasUnits + APPROVAL_GAS * BigInt(approvals)),
    expires_at: route.expiresAtSeconds,
  };
}

const FULL_BPS = 10_000n;

/** The exchange delivers exactly its quote or gives the deposit back, so every slippage is satisfied. */
function exchangeEstimate({ amountType, slippageBps }: WalletSwap, { source, exchange }: ExchangeOffer) {
  const { rawInput, rawOutput, expiresAtSeconds } = exchange.quote;
  const isInput = amountType === 'exact_input';
  const minimum = isInput ? (rawOutput * (FULL_BPS - BigInt(slippageBps))) / FULL_BPS : rawOutput;
  return {
    input_amount: String(rawInput),
    est_output_amount: String(rawOutput),
    minimum_output_amount: String(minimum),
    gas_estimate: source.tokenAddress === null ? NATIVE_TRANSFER_GAS : TOKEN_TRANSFER_GAS,
    estimated_fees: feesOf(exchange),
    expires_at: expiresAtSeconds,
  };
}
