import { FEE_ACCOUNT, NATIVE } from '../ledger.ts';
import { hasNativeAsset } from '../sponsors.ts';
import type { EvmPlan } from './plan.ts';
import type { EvmState } from './state.ts';

// Tempo has no native asset. Gas is priced in 10^-18 US dollars and paid in stablecoins with 6 decimals.
const ATTODOLLARS_PER_UNIT = 10n ** 12n;
/** The address prefix of the stablecoins that Tempo itself issues. */
const TEMPO_TOKEN = /^0x20c0000000000000000000/;
const DEFAULT_FEE_TOKEN = '0x20c0000000000000000000000000000000000000';

/** An amount that a transaction may charge an account. */
interface Charge {
  readonly owner: string;
  readonly asset: string;
  readonly amount: bigint;
}

/**
 * Returns the account that pays the gas of a transaction, the asset, and a function that computes the amount from gas
 * and price.
 */
function gasPaymentOf(state: EvmState, plan: EvmPlan) {
  if (hasNativeAsset(state)) {
    return { owner: plan.feePayer, asset: NATIVE, amountOf: (gas: bigint, price: bigint) => gas * price };
  }
  return {
    owner: plan.feePayer,
    asset: plan.feeToken ?? tokenOfCalls(plan) ?? DEFAULT_FEE_TOKEN,
    // Rounded up to whole base units.
    amountOf: (gas: bigint, price: bigint) =>
      (gas * price + ATTODOLLARS_PER_UNIT - 1n) / ATTODOLLARS_PER_UNIT,
  };
}

// Returns the stablecoin that all calls of the transaction use, if there is one.
// CHOICE: it is the default fee token. Without one, Tempo's first stablecoin is.
function tokenOfCalls({ calls }: EvmPlan): string | undefined {
  const [first] = calls;
  const isOne = calls.every(({ to }) => to === first?.to);
  return isOne && first?.to != null && TEMPO_TOKEN.test(first.to) ? first.to : undefined;
}

/** Returns the maximum charges of a transaction: gas limit * fee cap, and the value of its calls. */
function maxChargesOf(state: EvmState, plan: EvmPlan): Charge[] {
  const { owner, asset, amountOf } = gasPaymentOf(state, plan);
  const fee = { owner, asset, amount: amountOf(plan.gasLimit, plan.maxFeePerGas) };
  const amount = plan.calls.reduce((sum, { value }) => sum + value, 0n);
  return [fee, { owner: plan.sender, asset: NATIVE, amount }];
}

/** Returns whether the charged accounts can pay for all these transactions together. */
export function canAfford(state: EvmState, plans: readonly EvmPlan[]): boolean {
  const charges = plans.flatMap((plan) => maxChargesOf(state, plan));
  return charges.every(({ owner, asset }) => {
    const same = charges.filter((charge) => charge.owner === owner && charge.asset === asset);
    return same.reduce((sum, { amount }) => sum + amount, 0n) <= state.ledger.balance(owner, asset);
  });
}

/** Buys gas up to the limit. The returned `settle` refunds the unused gas to the payer and returns the fee. */
export function buyGas(
  state: EvmState,
  plan: EvmPlan,
): { readonly price: bigint; settle(gasUsed: bigint): bigint } {
  const { ledger } = state;
  const { owner, asset, amountOf } = gasPaymentOf(state, plan);
  // effective price = min(fee cap, base fee + tip)
  const offered = state.baseFee + plan.maxPriorityFeePerGas;
  const price = offered < plan.maxFeePerGas ? offered : plan.maxFeePerGas;
  const bought = amountOf(plan.gasLimit, price);
  ledger.debit({ owner, asset, amount: bought, shortfall: 'the gas cannot be paid' });
  return {
    price,
    settle(gasUsed) {
      const fee = amountOf(gasUsed, price);
      ledger.credit(owner, asset, bought - fee);
      ledger.credit(FEE_ACCOUNT, asset, fee);
      return fee;
    },
  };
}
