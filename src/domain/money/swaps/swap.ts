import {
  isSpentKnown,
  readSwapTerms,
  type SwapBody,
  type SwapTerms,
  swapAction,
} from '../../../engine/actions/swap-terms.ts';
import { ApiError } from '../../../errors.ts';
import type {
  ExecuteWalletSwapRequest,
  QuoteWalletSwapRequest,
  SwapQuoteResponse,
} from '../../../generated/schemas.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  tryPlan,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { requireAuthorization } from '../../access/owners/require-authorization.ts';
import { refusingTerms } from '../../base/actions/action-refusals.ts';
import { authorizeUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { signersOf, type WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { SwapOutcomeTerms } from '../wallet-actions/action-types.ts';
import { feesOf } from '../wallet-actions/plan-exchange.ts';
import { estimateDepositGas } from '../wallet-actions/transfer.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action.entity.ts';
import {
  beginWalletAction,
  type NewExternalStep,
  requireFreshNonce,
  sendSteps,
} from '../wallet-actions/wallet-action.ts';
import {
  type ExchangeOffer,
  offerSwap,
  planSwap,
  type RouteOffer,
  routeApprovals,
  type SwapPlan,
} from './plan-swap.ts';

export interface WalletSwap extends SwapTerms {
  readonly recipient: string;
}

/**
 * Reads the body of a swap or of a swap quote.
 *
 * @throws ApiError invalid_data naming the field; not_supported for chains of another wallet type, for assets that
 * cannot be swapped for each other, and for custodial wallets.
 */
export function readSwap(
  wallet: Pick<WalletRow, 'chain_type' | 'custody_provider' | 'address'>,
  body: SwapBody,
): WalletSwap {
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no swaps from here yet');
  }
  const terms = refusingTerms(() => readSwapTerms(wallet.chain_type, body));
  return { ...terms, recipient: terms.recipient ?? wallet.address };
}

/** The terms of a requested swap, and its plan. */
export interface PlannedSwapRequest {
  readonly terms: WalletSwap;
  /** The plan is separate from the terms, because policies evaluate the terms even if the swap cannot be executed. */
  readonly plan: Planned<SwapPlan>;
}

interface SwapInput {
  readonly walletId: string;
  readonly body: ExecuteWalletSwapRequest;
  /** The result of `planSwapRequest`. */
  readonly planned: Planned<PlannedSwapRequest>;
}

/**
 * Swaps an asset of a wallet. If the wallet has an owner, the owner or an additional signer must have signed the
 * request, and every applicable policy must allow the body.
 *
 * All transactions of the swap are signed together with the action. A swap by a router consists of an exact approval,
 * if one is needed, and the call of the router, which reverts beyond the slippage. A swap by the exchange consists of
 * the deposit to it.
 *
 * @throws ApiError not_found; invalid_data; not_supported; policy_violation; resource_conflict for a nonce that this
 * wallet has already used; what `requireAuthorization` and `planSwap` throw.
 */
export async function executeWalletSwap(
  context: OperationContext,
  { walletId, body, planned }: SwapInput,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'executeWalletSwap',
    request: body,
    async prepare() {
      const { terms, plan } = unwrapPlan(planned);
      return { action: swapAction(body, terms, spentBy(terms, plan)), terms, plan };
    },
    allowsSigners: true,
  });
  const { terms, plan } = use.prepared;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const swap = unwrapPlan(plan);
  const { offer } = swap;
  const sent = await sendSteps(context, wallet, {
    ...{ type: 'swap', referenceId: body.reference_id, builds: swap.builds },
    readsEffects: offer.by === 'route',
    authorization: use.authorization,
  });
  return beginWalletAction(context, wallet.id, {
    ...{ type: 'swap', nonce: body.nonce, referenceId: body.reference_id },
    details: detailsOf(wallet, terms, swap),
    terms: offer.by === 'route' ? routeTerms(offer, swap) : { feeAsset: offer.source.asset },
    steps: [...sent, ...(offer.by === 'route' ? [] : [exchangeStep(offer)])],
  });
}

/**
 * Reads the body of a swap, and plans the swap with the router or the exchange.
 *
 * @throws ApiError not_found; what `readSwap` throws for a body that this wallet cannot swap.
 */
export async function planSwapRequest(
  context: PlanContext,
  walletId: string,
  body: ExecuteWalletSwapRequest,
): Promise<PlannedSwapRequest> {
  const wallet = await findWallet(context, walletId);
  const terms = readSwap(wallet, body);
  return { terms, plan: await tryPlan(() => planSwap(context, wallet, terms)) };
}

/** Returns the spending that policies evaluate. If the request does not determine it, the plan does. */
function spentBy(terms: WalletSwap, plan: Planned<SwapPlan>) {
  const { source, recipient, rawAmount } = terms;
  if (isSpentKnown(terms)) return { rawAmount, decimals: source.asset?.decimals ?? 0, recipient };
  const { rawInputMax, offer } = unwrapPlan(plan);
  return { rawAmount: rawInputMax, decimals: offer.source.decimals, recipient };
}

function routeTerms({ source, route }: RouteOffer, { approved }: SwapPlan): SwapOutcomeTerms {
  const { spent, received, spender } = route;
  const { tokenAddress } = source;
  if (approved === undefined || spender === null || tokenAddress === null) return { spent, received };
  const allowance = { token_address: tokenAddress, spender, raw_amount: String(approved) };
  return { spent, received, allowance };
}

/** Returns the wire fields that describe the request. */
function detailsOf(wallet: WalletRow, terms: WalletSwap, { offer, estimatedGas }: SwapPlan): object {
  const { source, destination, recipient } = terms;
  return {
    caip2: source.chain.caip2,
    input_token: source.tokenAddress ?? 'native',
    output_token: destination.tokenAddress ?? 'native',
    ...(destination.chain === source.chain ? {} : { destination_caip2: destination.chain.caip2 }),
    ...(recipient === wallet.address ? {} : { destination_address: recipient }),
    estimated_fees: offer.by === 'route' ? null : feesOf(offer.exchange),
    estimated_gas: estimatedGas,
  };
}

function exchangeStep({ exchange }: ExchangeOffer): NewExternalStep {
  const { destination, quote } = exchange;
  return {
    ...{ type: 'external_transaction', kind: 'exchange', caip2: destination.chain.caip2 },
    externalId: quote.id,
    delivery: {
      input_amount: String(quote.rawInput),
      output_amount: String(quote.rawOutput),
      fees: feesOf(exchange),
    },
  };
}

/** The estimate of a swap, in wire form. */
export type SwapEstimate = SwapQuoteResponse;

interface SwapQuoteInput {
  readonly walletId: string;
  /** The result of `planSwapQuote`. */
  readonly planned: Planned<SwapEstimate>;
}

/**
 * Returns the planned quote of a swap, if the caller may use the wallet.
 *
 * @throws ApiError not_found; what `requireAuthorization` and `planSwapQuote` throw.
 */
export async function quoteWalletSwap(
  context: OperationContext,
  { walletId, planned }: SwapQuoteInput,
): Promise<SwapQuoteResponse> {
  const wallet = await findWallet(context, walletId);
  await requireAuthorization(context, { ownerId: wallet.owner_id, signers: signersOf(wallet) });
  return unwrapPlan(planned);
}

/**
 * Gets a quote from the router or the exchange. The balance of the wallet does not matter.
 *
 * @throws ApiError not_found; what `readSwap` and `offerSwap` throw.
 */
export async function planSwapQuote(
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

// CHOICE: a quote is not simulated, because the wallet need not hold the input yet. The estimate uses the gas of common
// token contracts.
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

/**
 * Returns the estimate of a swap by the exchange. The exchange delivers exactly its quote or refunds the deposit, so
 * the slippage only determines the minimum that is shown.
 */
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
