import { isSpentKnown, swapAction } from '../../../actions/swap-terms.ts';
import type { ExecuteWalletSwapRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import {
  beginWalletAction,
  type NewExternalStep,
  requireFreshNonce,
} from '../wallet-actions/begin-wallet-action.ts';
import { feesOf } from '../wallet-actions/plan-exchange.ts';
import { sendSteps } from '../wallet-actions/send-steps.ts';
import type { SwapOutcomeTerms } from '../wallet-actions/swap-type.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';
import { type ExchangeOffer, planSwap, type RouteOffer, type SwapPlan } from './plan-swap.ts';
import { readSwap, type WalletSwap } from './read-swap.ts';

export interface SwapInput {
  readonly walletId: string;
  readonly body: ExecuteWalletSwapRequest;
  /** From `prepareSwap`. */
  readonly planned: Planned<SwapPlan>;
}

/**
 * Swaps an asset of a wallet. If the wallet has an owner, the owner or an additional signer must have signed the
 * request, and every applicable policy must allow the body. All transactions of the swap are signed together with the
 * action: on one EVM chain an exact approval, if needed, and the call of the router, which reverts beyond the slippage;
 * otherwise the deposit to the exchange.
 *
 * @throws ApiError not_found; invalid_data; not_supported; the codes of `requireOwner`; policy_violation;
 * resource_conflict for a nonce that this wallet has already used; what `planSwap` throws.
 */
export async function executeWalletSwap(
  context: OperationContext,
  { walletId, body, planned }: SwapInput,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'executeWalletSwap',
    request: body,
    decode() {
      const terms = readSwap(wallet, body);
      return { action: swapAction(body, terms, spentBy(terms, planned)), terms };
    },
    mayBeSigner: true,
  });
  const { terms } = use.decoded;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const plan = unwrapPlan(planned);
  const { offer } = plan;
  const sent = await sendSteps(context, wallet, {
    ...{ type: 'swap', referenceId: body.reference_id, builds: plan.builds },
    readsEffects: offer.by === 'route',
  });
  return beginWalletAction(context, wallet.id, {
    ...{ type: 'swap', nonce: body.nonce, referenceId: body.reference_id },
    details: detailsOf(wallet, terms, plan),
    terms: offer.by === 'route' ? routeTerms(offer, plan) : { feeAsset: offer.source.asset },
    steps: [...sent, ...(offer.by === 'route' ? [] : [exchangeStep(offer)])],
  });
}

/**
 * Asks who swaps and what it takes.
 *
 * @throws the verb's errors for a swap that cannot be executed.
 */
export async function prepareSwap(
  context: PlanContext,
  walletId: string,
  body: ExecuteWalletSwapRequest,
): Promise<SwapPlan> {
  const wallet = await findWallet(context, walletId);
  return planSwap(context, wallet, readSwap(wallet, body));
}

/** What policies judge: known from the request, or from the plan. */
function spentBy(terms: WalletSwap, planned: Planned<SwapPlan>) {
  const { source, recipient, rawAmount } = terms;
  if (isSpentKnown(terms)) return { rawAmount, decimals: source.asset?.decimals ?? 0, recipient };
  const { rawInputMax, offer } = unwrapPlan(planned);
  return { rawAmount: rawInputMax, decimals: offer.source.decimals, recipient };
}

function routeTerms({ source, route }: RouteOffer, { approved }: SwapPlan): SwapOutcomeTerms {
  const { spent, received, spender } = route;
  const { tokenAddress } = source;
  if (approved === undefined || spender === null || tokenAddress === null) return { spent, received };
  const allowance = { token_address: tokenAddress, spender, raw_amount: String(approved) };
  return { spent, received, allowance };
}

/** The wire fields that describe the request. */
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
