import { type Movement, NATIVE, RevertError } from '../ledger.ts';
import type { Block } from '../pool.ts';
import { hasNativeAsset } from '../sponsors.ts';
import { applyTokenCall } from '../token-effects.ts';
import type { EvmState } from './state.ts';

/** One execution: the state that it changes, its block, and what it has done so far. */
export interface Frame {
  readonly state: EvmState;
  readonly block: Block;
  readonly movements: Movement[];
  gas: bigint;
}

/** Moves the native asset. Throws RevertError. */
export function moveValue({ state, movements }: Frame, from: string, to: string, value: bigint): void {
  if (value === 0n) return;
  if (!hasNativeAsset(state))
    throw new RevertError('expected no value on a chain without a native asset', true);
  const shortfall = 'insufficient funds for transfer';
  state.ledger.debit({ owner: from, asset: NATIVE, amount: value, shortfall });
  state.ledger.credit(to, NATIVE, value);
  movements.push({ sender: from, recipient: to, asset: NATIVE, amount: value });
}

/** A contract sends tokens that it holds. Throws RevertError. */
export function sendToken(frame: Frame, token: string, from: string, to: string, amount: bigint): void {
  applyTokenCall(effectsOf(frame), { from, token, value: 0n }, { name: 'transfer', to, amount });
}

/** A contract takes tokens that their owner has allowed it to spend. Throws RevertError. */
export function pullToken(
  frame: Frame,
  token: string,
  { spender, owner, to, amount }: { spender: string; owner: string; to: string; amount: bigint },
): void {
  const call = { name: 'transferFrom', from: owner, to, amount } as const;
  applyTokenCall(effectsOf(frame), { from: spender, token, value: 0n }, call);
}

export function effectsOf({ state: { ledger, accounts }, movements }: Frame) {
  return { ledger, accounts, movements };
}
