import type { TokenCall } from '../../../../engine/signing/ethereum/contract-calls.ts';
import type { Machine } from '../blocks.ts';
import {
  type ContractAccounts,
  FEE_ACCOUNT,
  type Ledger,
  type Movement,
  NATIVE,
  RevertError,
} from '../ledger.ts';
import type { ChainStore } from '../store.ts';
import { applyTokenCall } from '../token-effects.ts';
import type { TronPlan } from './plan.ts';

// CHOICE: no account has staked resources, so bandwidth and energy are always charged, at the prices of 2026. The
// activation of a new recipient is free.
const SUN_PER_BYTE = 1_000n;
const RESULT_BYTES = 64n;
const SUN_PER_ENERGY = 100n;
const ENERGY: Readonly<Record<TokenCall['name'], bigint>> = {
  transfer: 65_000n,
  approve: 50_000n,
  transferFrom: 80_000n,
};
const OTHER_ENERGY = 10_000n;

export interface TronState {
  readonly store: ChainStore;
  readonly ledger: Ledger;
  readonly accounts: ContractAccounts;
}

export interface TronRun {
  readonly fee: bigint;
  readonly energy: bigint;
  readonly revert: RevertError | undefined;
  readonly movements: readonly Movement[];
}

export function makeTronMachine(state: TronState): Machine<TronPlan> {
  return {
    readiness({ plan }, nowSeconds) {
      if (plan.expirationMs <= nowSeconds * 1000) return 'drop';
      // CHOICE: TRON has no nonces and does not replace transactions. So for both sentinels, no block includes the
      // transaction.
      if (plan.sentinel === 'stuck' || plan.sentinel === 'replaced') return 'waits';
      return canPay(state, plan) ? 'ready' : 'drop';
    },
    execute:
      async ({ plan }) =>
      () => {
        const { fee, revert, movements } = runTron(state, plan, { isIncluded: true });
        return { fee, failure: revert?.message, movements };
      },
    replacementOf: () => null,
  };
}

/** Returns whether the owner's balance covers the amount and all fees. */
export function canPay({ ledger }: TronState, plan: TronPlan): boolean {
  return ledger.balance(plan.owner, NATIVE) >= plan.amount + bandwidthFee(plan) + energyFee(plan);
}

/** Charges the fees and executes the contract. If the contract fails, its changes are reverted. */
export function runTron(state: TronState, plan: TronPlan, { isIncluded }: { isIncluded: boolean }): TronRun {
  const { ledger, accounts, store } = state;
  const movements: Movement[] = [];
  const fee = bandwidthFee(plan) + energyFee(plan);
  ledger.debit({ owner: plan.owner, asset: NATIVE, amount: fee, shortfall: 'the fee cannot be paid' });
  ledger.credit(FEE_ACCOUNT, NATIVE, fee);
  let revert: RevertError | undefined;
  try {
    store.atomically(() => {
      if (energyNeeded(plan) * SUN_PER_ENERGY > plan.feeLimit) throw new RevertError('OUT_OF_ENERGY');
      if (plan.amount > 0n) move();
      const call = { from: plan.owner, token: plan.to, value: plan.amount };
      if (plan.token !== null) applyTokenCall({ ledger, accounts, movements }, call, plan.token);
      if (isIncluded && plan.sentinel === 'reverted') throw new RevertError('REVERT');
    });
  } catch (error) {
    if (!(error instanceof RevertError)) throw error;
    revert = error;
  }
  return { fee, energy: energyNeeded(plan), revert, movements: revert === undefined ? movements : [] };

  function move(): void {
    const { owner, to, amount } = plan;
    ledger.debit({ owner, asset: NATIVE, amount, shortfall: 'balance is not sufficient' });
    ledger.credit(to, NATIVE, amount);
    movements.push({ sender: owner, recipient: to, asset: NATIVE, amount });
  }
}

function bandwidthFee({ wireBytes }: TronPlan): bigint {
  return (BigInt(wireBytes) + RESULT_BYTES) * SUN_PER_BYTE;
}

function energyNeeded({ isContractCall, token }: TronPlan): bigint {
  if (!isContractCall) return 0n;
  return token === null ? OTHER_ENERGY : ENERGY[token.name];
}

/** Returns the energy fee, which the transaction's fee limit caps. */
function energyFee(plan: TronPlan): bigint {
  const fee = energyNeeded(plan) * SUN_PER_ENERGY;
  return fee < plan.feeLimit ? fee : plan.feeLimit;
}
