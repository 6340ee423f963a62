import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import type { FeeLineItem, Gas } from '../../../generated/schemas.ts';
import type { ProviderFee } from './action-types.ts';
import type { StoredStep } from './wallet-action-steps.ts';

/** The network fee in wire form; null if gas is not paid in a native asset. */
export function gasOf({ native }: KnownChain, fee: bigint): Gas | null {
  if (native === undefined) return null;
  return {
    amount: decimalText(fromRaw(fee, native.decimals)),
    base_amount: fee.toString(),
    gas_asset: native.asset,
  };
}

/** The network fees that the wallet paid for all steps together; null if it paid none. */
export function gasPaid(steps: readonly StoredStep[]): Gas | null {
  const transactions = steps
    .flatMap((step) => ('transaction' in step ? step.transaction : []))
    .filter(({ is_sponsored: isSponsored }) => isSponsored === 0);
  const paid = transactions.flatMap(({ fee_paid: fee }) => fee ?? []);
  const chain = chainOfCaip2(transactions[0]?.caip2 ?? '');
  if (paid.length === 0 || chain === undefined) return null;
  return gasOf(
    chain,
    paid.reduce((sum, fee) => sum + BigInt(fee), 0n),
  );
}

/** The wire fields that the external step of an action sets on delivery; undefined if there is none. */
export function deliveryOf(steps: readonly StoredStep[]): object | undefined {
  const external = steps.find((step) => 'external' in step);
  return external?.external.delivery;
}

/** The fee that the exchange kept, in this asset; undefined if it kept none. */
export function relayerFeeIn(
  steps: readonly StoredStep[],
  asset: string | undefined,
): ProviderFee | undefined {
  const { fees = [] } = (deliveryOf(steps) ?? {}) as { fees?: readonly FeeLineItem[] };
  const fee = fees.find(({ type }) => type === 'relayer');
  return fee === undefined || asset === undefined ? undefined : { asset, amount: fee.amount };
}

/** Selects movements. Addresses can be in any case. A `token` of null selects the native asset. */
interface MovementFilter {
  readonly token: string | null;
  readonly from?: string;
  readonly to?: string;
}

/**
 * The sum of the movements in the transactions of an action that match a filter, in base units.
 *
 * INVARIANT: when the action ends, every step stored with `readsEffects` has its effects, if its transaction
 * succeeded.
 */
export function movedIn(steps: readonly StoredStep[], { token, from, to }: MovementFilter): bigint {
  const isSame = (wanted: string | null | undefined, found: string | null): boolean =>
    wanted === undefined || wanted?.toLowerCase() === found?.toLowerCase();
  return steps
    .flatMap((step) => ('transaction' in step ? step.effects : []))
    .filter((moved) => isSame(token, moved.token) && isSame(from, moved.from) && isSame(to, moved.to))
    .reduce((sum, { rawAmount }) => sum + BigInt(rawAmount), 0n);
}
