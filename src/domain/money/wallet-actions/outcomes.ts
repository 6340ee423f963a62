import type { Gas } from '../../../generated/schemas.ts';
import { chainOfCaip2, type KnownChain } from '../../access/chains/known-chains.ts';
import { decimalText, fromRaw } from '../../wallets/balances/decimal.ts';
import type { StoredStep } from './wallet-action-steps.ts';

/** The network fee in wire form; null when gas is not paid in a native asset. */
export function gasOf({ native }: KnownChain, fee: bigint): Gas | null {
  if (native === undefined) return null;
  return {
    amount: decimalText(fromRaw(fee, native.decimals)),
    base_amount: fee.toString(),
    gas_asset: native.asset,
  };
}

/** The network fees of all steps together; null when there were none. */
export function gasPaid(steps: readonly StoredStep[]): Gas | null {
  const transactions = steps.flatMap((step) => ('transaction' in step ? step.transaction : []));
  const paid = transactions.flatMap(({ fee_paid: fee }) => fee ?? []);
  const chain = chainOfCaip2(transactions[0]?.caip2 ?? '');
  if (paid.length === 0 || chain === undefined) return null;
  return gasOf(
    chain,
    paid.reduce((sum, fee) => sum + BigInt(fee), 0n),
  );
}

/** The wire fields that the external step of an action delivers; undefined when it has none. */
export function deliveryOf(steps: readonly StoredStep[]): object | undefined {
  const external = steps.find((step) => 'external' in step);
  return external?.external.delivery;
}

/** Selects movements. Addresses in any case; `token` null is the native asset. */
interface MovementFilter {
  readonly token: string | null;
  readonly from?: string;
  readonly to?: string;
}

/**
 * The sum of what the transactions of an action moved, in base units.
 *
 * INVARIANT: every step stored with `readsEffects` has effects once the action ends, if its transaction succeeded.
 */
export function movedIn(steps: readonly StoredStep[], { token, from, to }: MovementFilter): bigint {
  const isSame = (wanted: string | null | undefined, found: string | null): boolean =>
    wanted === undefined || wanted?.toLowerCase() === found?.toLowerCase();
  return steps
    .flatMap((step) => ('transaction' in step ? step.effects : []))
    .filter((moved) => isSame(token, moved.token) && isSame(from, moved.from) && isSame(to, moved.to))
    .reduce((sum, { rawAmount }) => sum + BigInt(rawAmount), 0n);
}
