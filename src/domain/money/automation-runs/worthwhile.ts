import type { SqlEntityManager } from '@mikro-orm/sql';
import { divide, fromRaw, round, toRaw } from '../../../assets/decimal.ts';
import { ceilingsOf } from '../../../assets/fee-ceilings.ts';
import { assetAtAddress, type KnownAsset } from '../../../assets/known-assets.ts';
import { chainOfCaip2, type KnownChain } from '../../../assets/known-chains.ts';
import type { PlanContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { pricesOf, worthOf } from '../../wallets/balances/worth.ts';
import { callChain } from '../sending/call-chain.ts';

// HOT: Kysely, not for measured speed: reads the tables of executions and transactions, as the other files here.

/** CHOICE: the share of the proceeds that an automation may pay for gas, where the operator sets nothing. */
const USUAL_SHARE = 0.5;
const DAY_MS = 24 * 60 * 60_000;
/** Decimal places in which shares count. */
const SHARE_UNITS = 1_000_000n;

/** What an execution would pay and bring. */
export interface Spending {
  readonly caip2: string;
  /** The most that the gas costs, also if it is sponsored, in base units of the native asset. */
  readonly cost: bigint;
  /** The least that it brings, or moves where nothing is swapped. */
  readonly proceeds: { readonly caip2: string; readonly token: string | null; readonly rawAmount: bigint };
}

/**
 * Why an execution is not worth its gas: anyone can send a token whose approval burns gas, so an automation never spends
 * more than it brings. Undefined if it is, or if nothing says what it brings. Call it outside any database transaction.
 *
 * CHOICE: gas may cost the share `CUSTOS_AUTOMATION_FEE_SHARE` of what the execution brings, and the automations of a
 * wallet may spend on gas per chain and day what one transaction may (`CUSTOS_FEE_CEILINGS`). Where neither a price nor
 * a router says what the proceeds are worth, only the second limit counts.
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
 * Why an execution exceeds what the automations of its wallet may spend on gas within a day; undefined if it does not.
 *
 * INVARIANT: called with the wallet locked, in the transaction that submits the execution: executions of other assets
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

/** What the proceeds are worth in base units of the native asset that pays the gas; undefined if it is unknown. */
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
  // What is asked for tokens without a name is whatever their maker says.
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
 * The gas that the automations of a wallet have paid, or may pay: of an action that is under way, all that was planned, as
 * later transactions of it may not exist yet.
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
        // Submitted by an earlier version.
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
