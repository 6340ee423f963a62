import type { TokenCall } from '../../../engine/signing/ethereum/contract-calls.ts';
import { type ContractAccounts, type Ledger, type Movement, RevertError } from './ledger.ts';

const MAX_ALLOWANCE = 2n ** 256n - 1n;

/** The state that calls of tokens change. */
export interface TokenEffects {
  readonly ledger: Ledger;
  readonly accounts: ContractAccounts;
  readonly movements: Movement[];
}

/** The return data of a function that returns true: the number 1 in 32 bytes. */
const TRUE = Uint8Array.from({ length: 32 }, (_, index) => (index === 31 ? 1 : 0));

/**
 * Executes an ERC-20 call and returns its return data.
 *
 * @throws RevertError
 */
export function applyTokenCall(
  { ledger, accounts, movements }: TokenEffects,
  { from, token, value }: { from: string; token: string; value: bigint },
  call: TokenCall,
): Uint8Array {
  if (value > 0n) throw new RevertError('execution reverted: the token accepts no native value');
  if (call.name === 'approve') {
    accounts.setAllowance({ token, owner: from, spender: call.spender }, call.amount);
    return TRUE;
  }
  const owner = call.name === 'transfer' ? from : call.from;
  if (call.name === 'transferFrom') spendAllowance(accounts, { token, owner, spender: from }, call.amount);
  const shortfall = 'execution reverted: ERC20: transfer amount exceeds balance';
  ledger.debit({ owner, asset: token, amount: call.amount, shortfall });
  ledger.credit(call.to, token, call.amount);
  movements.push({ sender: owner, recipient: call.to, asset: token, amount: call.amount });
  return TRUE;
}

/**
 * Decreases an allowance.
 *
 * @throws RevertError if the allowance is too low.
 */
export function spendAllowance(
  accounts: ContractAccounts,
  key: { token: string; owner: string; spender: string },
  amount: bigint,
): void {
  const allowed = accounts.allowance(key);
  // The maximum allowance counts as infinite, so it does not decrease.
  if (allowed === MAX_ALLOWANCE) return;
  if (allowed < amount) throw new RevertError('execution reverted: ERC20: insufficient allowance');
  accounts.setAllowance(key, allowed - amount);
}
