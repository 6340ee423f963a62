import { FEE_ACCOUNT, NATIVE } from '../ledger.ts';
import { tempoChains } from '../sponsors.ts';
import type { EvmState } from './machine.ts';
import type { EvmPlan } from './plan.ts';

// Tempo has no native asset: gas is priced in 10^-18 US dollars and paid in stablecoins of 6 decimals.
const ATTODOLLARS_PER_UNIT = 10n ** 12n;
/** Every stablecoin that Tempo itself issues stands below this prefix. */
const TEMPO_TOKEN = /^0x20c0000000000000000000/;
const DEFAULT_FEE_TOKEN = '0x20c0000000000000000000000000000000000000';

/** Something that a transaction may take from an account. */
interface Debt {
  readonly owner: string;
  readonly asset: string;
  readonly amount: bigint;
}

export function hasNativeAsset({ chainId }: Pick<EvmState, 'chainId'>): boolean {
  return !tempoChains.has(`eip155:${chainId}`);
}

/** The gas of a transaction as money: who pays it, in which asset, and how much for so much gas at a price. */
function gasMoney(state: EvmState, plan: EvmPlan) {
  if (hasNativeAsset(state)) {
    return { owner: plan.feePayer, asset: NATIVE, amountOf: (gas: bigint, price: bigint) => gas * price };
  }
  return {
    owner: plan.feePayer,
    asset: plan.feeToken ?? tokenOfCalls(plan) ?? DEFAULT_FEE_TOKEN,
    // Rounded up: fractions of a unit cannot be paid.
    amountOf: (gas: bigint, price: bigint) =>
      (gas * price + ATTODOLLARS_PER_UNIT - 1n) / ATTODOLLARS_PER_UNIT,
  };
}

// CHOICE: who names no fee token pays in the stablecoin that all calls are for, else in the first that there was.
function tokenOfCalls({ calls }: EvmPlan): string | undefined {
  const [first] = calls;
  const isOne = calls.every(({ to }) => to === first?.to);
  return isOne && first?.to != null && TEMPO_TOKEN.test(first.to) ? first.to : undefined;
}

/** What a transaction can take at most: gas limit * fee cap, and what it sends. */
function debtsOf(state: EvmState, plan: EvmPlan): Debt[] {
  const { owner, asset, amountOf } = gasMoney(state, plan);
  const fee = { owner, asset, amount: amountOf(plan.gasLimit, plan.maxFeePerGas) };
  const amount = plan.calls.reduce((sum, { value }) => sum + value, 0n);
  return [fee, { owner: plan.sender, asset: NATIVE, amount }];
}

/** Whether everybody who owes for these transactions has enough for all of them. */
export function canAfford(state: EvmState, plans: readonly EvmPlan[]): boolean {
  const debts = plans.flatMap((plan) => debtsOf(state, plan));
  return debts.every(({ owner, asset }) => {
    const same = debts.filter((debt) => debt.owner === owner && debt.asset === asset);
    return same.reduce((sum, { amount }) => sum + amount, 0n) <= state.ledger.balance(owner, asset);
  });
}

/** Buys the whole gas, lets the work use some of it, and gives back what is left. The fee. */
export function withGas(state: EvmState, plan: EvmPlan, work: () => { readonly gasUsed: bigint }): bigint {
  const { ledger } = state;
  const { owner, asset, amountOf } = gasMoney(state, plan);
  // effective price = min(fee cap, base fee + tip)
  const offered = state.baseFee + plan.maxPriorityFeePerGas;
  const price = offered < plan.maxFeePerGas ? offered : plan.maxFeePerGas;
  const bought = amountOf(plan.gasLimit, price);
  ledger.debit({ owner, asset, amount: bought, shortfall: 'the gas cannot be paid' });
  const fee = amountOf(work().gasUsed, price);
  ledger.credit(owner, asset, bought - fee);
  ledger.credit(FEE_ACCOUNT, asset, fee);
  return fee;
}
