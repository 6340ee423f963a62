import assert from 'node:assert/strict';
import type { KnownAsset } from '../../../engine/assets/known-assets.ts';
import type { BatchCall } from '../../../engine/signing/ethereum/batch-executor.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { Gas } from '../../../generated/schemas.ts';
import type { EvmChain, SwapRefusal, SwapRoute, SwapRoutes } from '../../../ports/chains.ts';
import type { PlanContext } from '../../../ports/operation-context.ts';
import { findToken } from '../../access/chains/chains.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { BuildTransaction } from '../sending/broadcast.ts';
import { callChain, insufficientFunds } from '../sending/call-chain.ts';
import { approvalsFor, planCalls } from '../sending/plan-calls.ts';
import { paysForAutomations } from '../sending/plan-user-operation.ts';
import { gasOf } from '../wallet-actions/action-types.ts';
import { type PlannedExchange, quoteExchange } from '../wallet-actions/plan-exchange.ts';
import { depositOf, planSending } from '../wallet-actions/transfer.ts';
import type { WalletSwap } from './swap.ts';

/** The service that swaps, with its terms. */
export type SwapOffer = RouteOffer | ExchangeOffer;

/** A swap by a router on the chain. */
export interface RouteOffer {
  readonly by: 'route';
  readonly chain: EvmChain;
  readonly source: KnownAsset;
  readonly route: SwapRoute;
}

/** A swap by the exchange, which receives the input as a deposit. */
export interface ExchangeOffer {
  readonly by: 'exchange';
  readonly source: KnownAsset;
  readonly exchange: PlannedExchange;
}

/** A swap with all chain data that it needs. */
export interface SwapPlan {
  readonly offer: SwapOffer;
  /** The maximum amount that the swap spends, in base units of the source asset. */
  readonly rawInputMax: bigint;
  readonly estimatedGas: Gas | null;
  /** The maximum cost of the gas in base units of the native asset, even if the gas is sponsored. */
  readonly cost: bigint;
  /** The functions that build the transactions of the swap, in order. */
  readonly builds: readonly BuildTransaction[];
  /** The amount that the approval before the swap allows the router to take; undefined without an approval. */
  readonly approved: bigint | undefined;
}

/**
 * Determines which service swaps, and on which terms. Call it outside any database transaction.
 *
 * CHOICE: a router makes the swaps within an EVM chain, if one is configured for the chain. The exchange makes all
 * other swaps. If the app takes a fee, the exchange makes every swap, because routers cannot deduct a fee for the app.
 *
 * @throws ApiError not_supported for chains and assets that cannot be swapped; invalid_data for an amount that cannot
 * be swapped; transaction_broadcast_failure when the chain or the exchange cannot be reached.
 */
export async function offerSwap(
  context: PlanContext,
  wallet: Pick<WalletRow, 'address'>,
  terms: WalletSwap,
): Promise<SwapOffer> {
  const { source, destination, appFeeBps } = terms;
  const chain = context.chains.find(source.chain.caip2);
  if (chain === undefined) {
    throw notSupported('/source/caip2', `the chain \`${source.chain.caip2}\` is not configured here`);
  }
  const { swapRoutes } = context;
  const isRouted = source.chain === destination.chain && appFeeBps === 0;
  if (isRouted && chain.kind === 'evm' && swapRoutes?.supports(chain.caip2) === true) {
    return offerRoute(context, wallet, { terms, chain, swapRoutes });
  }
  const from = requireNamed('/source/asset_address', source.asset);
  const to = requireNamed('/destination/asset_address', destination.asset);
  const exchange = await quoteExchange(context, {
    ...{ source: from, destination: to, payer: wallet.address, recipient: terms.recipient },
    ...{ rawAmount: terms.rawAmount, amountType: terms.amountType, appFeeBps },
    amountPointer: '/base_amount',
  });
  return { by: 'exchange', source: from, exchange };
}

interface Routed {
  readonly terms: WalletSwap;
  readonly chain: EvmChain;
  readonly swapRoutes: SwapRoutes;
}

async function offerRoute(
  context: PlanContext,
  wallet: Pick<WalletRow, 'address'>,
  { terms, chain, swapRoutes }: Routed,
): Promise<RouteOffer> {
  const { source, destination, recipient, rawAmount, amountType, slippageBps } = terms;
  const route = await callChain(
    swapRoutes.route({
      ...{ caip2: chain.caip2, sender: wallet.address, recipient },
      ...{ tokenIn: source.tokenAddress, tokenOut: destination.tokenAddress },
      ...{ rawAmount, amountType, slippageBps },
    }),
  );
  if ('fault' in route) throw refusalOf(route);
  const asset =
    source.asset ?? (await callChain(findToken(context, source.chain, source.tokenAddress ?? '')));
  return { by: 'route', chain, source: asset, route };
}

function refusalOf({ fault, message }: SwapRefusal): ApiError {
  return fault === 'pair' ? notSupported('/destination', message) : invalidField('/base_amount', message);
}

function requireNamed(pointer: string, asset: KnownAsset | undefined): KnownAsset {
  if (asset === undefined) throw notSupported(pointer, 'only assets that have a name here are exchanged');
  return asset;
}

/**
 * Plans the transactions of a swap, and checks that the wallet can afford them. Call it outside any database
 * transaction.
 *
 * @throws ApiError what `offerSwap` throws; insufficient_funds; transaction_execution_failure when the simulation
 * fails.
 */
export async function planSwap(
  context: PlanContext,
  wallet: WalletRow,
  terms: WalletSwap,
): Promise<SwapPlan> {
  const offer = await offerSwap(context, wallet, terms);
  return offer.by === 'route' ? planRoute(context, wallet, offer) : planDeposit(context, wallet, offer);
}

async function planRoute(context: PlanContext, wallet: WalletRow, offer: RouteOffer): Promise<SwapPlan> {
  const { chain, source, route } = offer;
  const { rawInputMax } = route;
  await requireBalance(chain, wallet, source, rawInputMax);
  const approvals = await routeApprovals(context, wallet, offer);
  const { estimatedFee, cost, builds } = await planCalls(context, {
    ...{ caip2: chain.caip2, address: wallet.address, method: 'swap' },
    calls: [...approvals, ...route.calls],
    isSponsored: paysForAutomations(context, chain),
  });
  return {
    ...{ offer, rawInputMax, builds, cost },
    estimatedGas: gasOf(source.chain, estimatedFee),
    approved: approvals.length === 0 ? undefined : rawInputMax,
  };
}

async function planDeposit(context: PlanContext, wallet: WalletRow, offer: ExchangeOffer): Promise<SwapPlan> {
  const { source, exchange } = offer;
  const { rawInput } = exchange.quote;
  const chain = context.chains.find(source.chain.caip2);
  assert(chain !== undefined, 'an offer is made on a configured chain');
  await requireBalance(chain, wallet, source, rawInput);
  const order = { ...depositOf(exchange), from: wallet.address };
  const { estimatedFee, build } = await planSending(context, order);
  return {
    ...{ offer, rawInputMax: rawInput, builds: [build], approved: undefined, cost: estimatedFee },
    estimatedGas: gasOf(source.chain, estimatedFee),
  };
}

async function requireBalance(
  chain: Pick<EvmChain, 'balances'>,
  wallet: WalletRow,
  { chain: { caip2 }, tokenAddress }: KnownAsset,
  rawAmount: bigint,
): Promise<void> {
  const [balance = 0n] = await callChain(chain.balances(wallet.address, [tokenAddress]));
  if (balance < rawAmount) {
    throw insufficientFunds({ caip2, address: wallet.address, tokenAddress, needed: rawAmount, balance });
  }
}

/**
 * Returns the calls that approve the maximum that the swap may cost (`rawInputMax`). Empty for a native asset, or if
 * the allowance suffices.
 */
export async function routeApprovals(
  context: PlanContext,
  wallet: WalletRow,
  { chain, source, route }: RouteOffer,
): Promise<BatchCall[]> {
  const { spender, rawInputMax: rawAmount } = route;
  const token = source.tokenAddress;
  if (spender === null || token === null) return [];
  return approvalsFor(context, { chain, token, owner: wallet.address, spender, rawAmount });
}

function notSupported(pointer: string, message: string): ApiError {
  return new ApiError('not_supported', `${pointer}: ${message}`);
}
