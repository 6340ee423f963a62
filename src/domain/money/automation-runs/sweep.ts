import type { SqlEntityManager } from '@mikro-orm/sql';
import { decimalText, divide, fromRaw, round, toRaw } from '../../../engine/assets/decimal.ts';
import { ceilingsOf } from '../../../engine/assets/fee-ceilings.ts';
import { assetAtAddress, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import { chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError } from '../../../errors.ts';
import type {
  AutomationAssetSpec,
  EarnRequest,
  ExecuteWalletSwapRequest,
  TransferRequest,
} from '../../../generated/schemas.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { type OperationContext, type PlanContext, tryPlan } from '../../../ports/operation-context.ts';
import type { StoredExecution } from '../../access/automations/automation.entity.ts';
import { isSameAsset, NATIVE } from '../../access/automations/automation.ts';
import { findToken } from '../../access/chains/chains.ts';
import type { Tables } from '../../tables.ts';
import { pricesOf, worthOf } from '../../wallets/balances/balances.ts';
import { depositIntoVault, planDepositRequest } from '../earn/earn-deposits.ts';
import { callChain } from '../sending/call-chain.ts';
import { paysForAutomations } from '../sending/plan-user-operation.ts';
import type { SwapPlan } from '../swaps/plan-swap.ts';
import { executeWalletSwap, planSwapRequest } from '../swaps/swap.ts';
import { planTransferRequest, transferFromWallet } from '../wallet-actions/transfer.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action.entity.ts';

// KYSELY: joins executions, steps and transactions.

/** CHOICE: an automation may pay this share of the proceeds for gas, unless the operator sets another share. */
const USUAL_SHARE = 0.5;
const DAY_MS = 24 * 60 * 60_000;
/** The number of units in a share of 1. Shares are counted with six decimal places. */
const SHARE_UNITS = 1_000_000n;

/** The cost of an execution and its proceeds. */
interface Spending {
  readonly caip2: string;
  /** The maximum cost of the gas in base units of the native asset, even if the gas is sponsored. */
  readonly cost: bigint;
  /** The minimum proceeds, or the moved amount if nothing is swapped. */
  readonly proceeds: { readonly caip2: string; readonly token: string | null; readonly rawAmount: bigint };
}

/**
 * Returns the reason why an execution is not worth its gas. Returns undefined if it is worth it, or if the value of its
 * proceeds is unknown. Anyone can send a token whose approval burns gas, so gas is limited to a share of the proceeds
 * where their value is known. Call it outside any database transaction.
 *
 * CHOICE: there are two limits on gas. An execution may spend the share `CUSTOS_AUTOMATION_FEE_SHARE` of its proceeds.
 * On an EVM chain, all automations of a wallet together may spend as much per day as one transaction may
 * (`CUSTOS_FEE_CEILINGS`). If neither a price nor a router gives the value of the proceeds, only the second limit
 * applies.
 */
export async function shareRefusal(
  context: PlanContext,
  address: string,
  spending: Spending,
): Promise<string | undefined> {
  const { cost } = spending;
  if (cost === 0n) return undefined;
  const worth = await worthInNative(context, address, spending);
  const share = context.automationFeeShare ?? USUAL_SHARE;
  if (worth === undefined || cost * SHARE_UNITS <= worth * BigInt(Math.round(share * Number(SHARE_UNITS)))) {
    return undefined;
  }
  return `the gas costs up to ${cost}, more than ${share} of what the execution brings, which is worth ${worth}`;
}

/**
 * Returns the reason why an execution exceeds the daily gas limit of the wallet's automations. Undefined if it does
 * not, and for chains other than EVM chains.
 *
 * Call it with the wallet locked, in the transaction that submits the execution, because executions for other assets
 * run at the same time.
 */
export async function budgetRefusal(
  { em, chains, nowMs }: Pick<PlanContext, 'em' | 'chains' | 'nowMs'>,
  walletId: string,
  { caip2, cost }: Spending,
): Promise<string | undefined> {
  if (cost === 0n || !caip2.startsWith('eip155:')) return undefined;
  const chain = chains.find(caip2);
  const { fee: budget } = (chain?.kind === 'evm' ? chain.ceilings : undefined) ?? ceilingsOf(caip2);
  const spent = await spentToday(em, { walletId, caip2, nowMs });
  if (spent + cost <= budget) return undefined;
  return `the automations of the wallet have spent ${spent} on gas within a day, and ${cost} more would exceed ${budget}`;
}

/**
 * Returns the value of the proceeds in base units of the native asset that pays the gas; undefined if it is unknown.
 *
 * @throws ApiError transaction_broadcast_failure when the router cannot be reached.
 */
async function worthInNative(
  context: PlanContext,
  address: string,
  { caip2, proceeds }: Spending,
): Promise<bigint | undefined> {
  const { token, rawAmount } = proceeds;
  if (proceeds.caip2 === caip2 && token === null) return rawAmount;
  const payer = chainOfCaip2(caip2);
  const chain = chainOfCaip2(proceeds.caip2);
  const native = payer && nativeOf(payer);
  const asset = chain && (token === null ? nativeOf(chain) : assetAtAddress(chain, token));
  // The deployer of an unknown token chooses what it reports, so its value is unknown.
  if (native === undefined || asset === undefined) return undefined;
  const priceOf = await pricesOf(context, [asset, native], 'usd');
  const [price, nativePrice] = [priceOf(asset), priceOf(native)];
  if (price !== undefined && nativePrice !== undefined && nativePrice.digits !== 0n && price.digits !== 0n) {
    const worth = divide(worthOf(fromRaw(rawAmount, asset.decimals), price), nativePrice, native.decimals);
    return toRaw(round(worth, native.decimals), native.decimals);
  }
  const { swapRoutes } = context;
  if (proceeds.caip2 !== caip2 || swapRoutes?.supports(caip2) !== true) return undefined;
  const route = await callChain(
    swapRoutes.route({
      ...{ caip2, sender: address, recipient: address, tokenIn: token, tokenOut: null },
      ...{ rawAmount, amountType: 'exact_input', slippageBps: 0 },
    }),
  );
  return 'fault' in route ? undefined : route.rawOutput;
}

function nativeOf(chain: KnownChain): KnownAsset | undefined {
  return chain.native && { ...chain.native, chain, tokenAddress: null };
}

/**
 * Returns the gas that the automations of a wallet have paid or may pay within a day. An action in progress counts with
 * its whole planned cost, because its later transactions may not exist yet.
 */
async function spentToday(
  em: SqlEntityManager,
  { walletId, caip2, nowMs }: { readonly walletId: string; readonly caip2: string; readonly nowMs: number },
): Promise<bigint> {
  const ofAction = em
    .getKysely<Tables>()
    .selectFrom('wallet_automation_executions as executions')
    .where('executions.wallet_id', '=', walletId)
    .where('executions.caip2', '=', caip2)
    .where('executions.created_at_ms', '>', nowMs - DAY_MS);
  const underWay = await ofAction
    .select('executions.gas_cost as planned')
    .where('executions.status', '=', 'submitted')
    .where('executions.gas_cost', 'is not', null)
    .execute();
  const made = await ofAction
    .innerJoin('wallet_action_steps as steps', 'steps.action_id', 'executions.action_id')
    .innerJoin('transactions', 'transactions.id', 'steps.transaction_id')
    .select(['transactions.fee_paid as paid', 'transactions.transaction_request as request'])
    .where((where) =>
      where.or([
        where('executions.status', '<>', 'submitted'),
        // Only executions that were submitted by an earlier version have no gas cost.
        where('executions.gas_cost', 'is', null),
      ]),
    )
    .execute();
  const planned = underWay.reduce((sum, { planned }) => sum + BigInt(planned ?? 0), 0n);
  return made.reduce(
    (sum, { paid, request }) => sum + (paid === null ? mostOf(request) : BigInt(paid)),
    planned,
  );
}

function mostOf(request: string | null): bigint {
  const { gas_limit: gas, max_fee_per_gas: cap, gas_price: price } = JSON.parse(request ?? '{}');
  return BigInt(gas ?? 0) * BigInt(cap ?? price ?? 0);
}

/**
 * CHOICE: gas for this many units stays in a wallet when its native asset is swept. It is enough for an approval and a
 * swap.
 */
const RESERVED_GAS = 500_000n;
/**
 * CHOICE: these lamports stay in a Solana wallet. They pay the fee of a transaction and the rent of the accounts that
 * it creates.
 */
const RESERVED_LAMPORTS = 5_000_000n;

/** The action of an execution, planned outside the transaction. */
export interface Sweep {
  /** Calls the verb that a request for the same action would call. */
  run(context: OperationContext): Promise<WalletActionRow>;
  /** The cost and the proceeds; undefined if the verb will refuse the request anyway. */
  readonly spending: Spending | undefined;
}

/**
 * Plans the sweep of a wallet's whole balance of the deposited asset. If it is the native asset, an amount for gas
 * stays in the wallet, unless the chain's paymaster pays. Returns undefined if there is nothing to sweep.
 *
 * @throws ApiError not_supported; insufficient_funds when the balance does not cover the gas;
 * transaction_broadcast_failure. Rejects with the port's error when the chain cannot be reached.
 */
export async function planSweep(
  context: PlanContext,
  { walletId, caip2, assetAddress, action }: StoredExecution,
  address: string,
): Promise<Sweep | undefined> {
  const chain = context.chains.find(caip2);
  if (chain === undefined)
    throw new ApiError('not_supported', `the chain \`${caip2}\` is not configured here`);
  const token = assetAddress === NATIVE ? null : assetAddress;
  const [held = 0n] = await chain.balances(address, [token]);
  if (held === 0n) return undefined;
  if (action.type === 'earn_deposit') {
    const body: EarnRequest = { vault_id: action.vault_id, raw_amount: String(held) };
    const planned = await tryPlan(() => planDepositRequest(context, walletId, body));
    const spending =
      'value' in planned ? { caip2, cost: planned.value.cost, proceeds: planned.value.deposited } : undefined;
    return { run: (unit) => depositIntoVault(unit, { walletId, body, planned }), spending };
  }
  const paysGas = token === null && !paysForAutomations(context, chain);
  const rawAmount = paysGas ? held - (await gasReserve(chain)) : held;
  if (rawAmount <= 0n) {
    throw new ApiError('insufficient_funds', 'the balance does not pay the gas of the action');
  }
  const source = { asset_address: assetAddress, caip2 };
  const { destination_chain_asset: asset, destination_address: recipient } = action;
  if (recipient !== undefined && isSameAsset(asset, source)) {
    return planForwarding(context, { walletId, recipient, source, rawAmount });
  }
  const body: ExecuteWalletSwapRequest = {
    source,
    destination: { ...asset, ...(recipient === undefined ? {} : { destination_address: recipient }) },
    base_amount: String(rawAmount),
  };
  const planned = await tryPlan(() => planSwapRequest(context, walletId, body));
  const plan = 'value' in planned ? planned.value.plan : planned;
  const spending = 'value' in plan ? spendingOf(caip2, asset, plan.value) : undefined;
  return { run: (unit) => executeWalletSwap(unit, { walletId, body, planned }), spending };
}

function spendingOf(caip2: string, destination: AutomationAssetSpec, plan: SwapPlan): Spending {
  const { offer, cost } = plan;
  const rawAmount = offer.by === 'route' ? offer.route.rawOutputMin : offer.exchange.quote.rawOutput;
  const { asset_address: address } = destination;
  const token = address === NATIVE ? null : address;
  return { caip2, cost, proceeds: { caip2: destination.caip2, token, rawAmount } };
}

interface Forwarding {
  readonly walletId: string;
  readonly recipient: string;
  readonly source: AutomationAssetSpec;
  readonly rawAmount: bigint;
}

/**
 * Plans the transfer of a deposit that is already in the destination asset and needs no swap.
 *
 * @throws ApiError not_supported; transaction_broadcast_failure when the chain cannot be reached.
 */
async function planForwarding(
  context: PlanContext,
  { walletId, recipient, source, rawAmount }: Forwarding,
): Promise<Sweep> {
  const known = chainOfCaip2(source.caip2);
  if (known === undefined)
    throw new ApiError('not_supported', `the chain \`${source.caip2}\` is not supported`);
  const isNative = source.asset_address === NATIVE;
  const { asset, decimals } = isNative
    ? requireNative(known)
    : await callChain(findToken(context, known, source.asset_address));
  const named = isNative || asset !== source.asset_address;
  const body: TransferRequest = {
    source: {
      ...(named ? { asset } : { asset_address: source.asset_address }),
      ...{ chain: known.name, amount: decimalText(fromRaw(rawAmount, decimals)) },
    } as TransferRequest['source'],
    destination: { address: recipient },
  };
  const planned = await tryPlan(() => planTransferRequest(context, walletId, body));
  const run: Sweep['run'] = (unit) => transferFromWallet(unit, { walletId, body, planned });
  const plan = 'value' in planned ? planned.value.plan : planned;
  if (!('value' in plan)) return { run, spending: undefined };
  const proceeds = { caip2: source.caip2, token: isNative ? null : source.asset_address, rawAmount };
  const cost = BigInt(plan.value.estimatedGas?.base_amount ?? 0);
  return { run, spending: { caip2: source.caip2, cost, proceeds } };
}

function requireNative({ native, name }: KnownChain): { readonly asset: string; readonly decimals: number } {
  if (native === undefined) throw new ApiError('not_supported', `\`${name}\` has no native asset`);
  return native;
}

async function gasReserve(chain: AnyChain): Promise<bigint> {
  if (chain.kind === 'evm') return (await chain.fees()).maxFeePerGas * RESERVED_GAS;
  return chain.kind === 'solana' ? RESERVED_LAMPORTS : 0n;
}
