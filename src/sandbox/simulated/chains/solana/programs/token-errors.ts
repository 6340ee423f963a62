import { custom, type InstructionFailureError } from '../failures.ts';
import type { Invocation } from '../runtime.ts';

// The errors of the token program. Source: spl-token, error.rs.

export const NOT_RENT_EXEMPT = 0;
export const INSUFFICIENT_FUNDS = 1;
export const INVALID_MINT = 2;
export const MINT_MISMATCH = 3;
export const OWNER_MISMATCH = 4;
export const FIXED_SUPPLY = 5;
export const ALREADY_IN_USE = 6;
export const NATIVE_NOT_SUPPORTED = 10;
export const NON_NATIVE_HAS_BALANCE = 11;
export const INVALID_INSTRUCTION = 12;
export const INVALID_STATE = 13;
export const OVERFLOW = 14;
export const AUTHORITY_TYPE_NOT_SUPPORTED = 15;
export const MINT_CANNOT_FREEZE = 16;
export const ACCOUNT_FROZEN = 17;
export const MINT_DECIMALS_MISMATCH = 18;
export const NON_NATIVE_NOT_SUPPORTED = 19;
/** Token-2022 only. */
export const IMMUTABLE_OWNER_ERROR = 34;

const messages: Readonly<Record<number, string>> = {
  [NOT_RENT_EXEMPT]: 'Lamport balance below rent-exempt threshold',
  [INSUFFICIENT_FUNDS]: 'insufficient funds',
  [INVALID_MINT]: 'Invalid Mint',
  [MINT_MISMATCH]: 'Account not associated with this Mint',
  [OWNER_MISMATCH]: 'owner does not match',
  [FIXED_SUPPLY]: 'the total supply of this token is fixed',
  [ALREADY_IN_USE]: 'account or token already in use',
  [NATIVE_NOT_SUPPORTED]: 'Instruction does not support native tokens',
  [NON_NATIVE_HAS_BALANCE]: 'Non-native account can only be closed if its balance is zero',
  [INVALID_INSTRUCTION]: 'Invalid instruction',
  [INVALID_STATE]: 'Invalid account state for operation',
  [OVERFLOW]: 'Operation overflowed',
  [AUTHORITY_TYPE_NOT_SUPPORTED]: 'Account does not support specified authority type',
  [MINT_CANNOT_FREEZE]: 'This token mint cannot freeze accounts',
  [ACCOUNT_FROZEN]: 'Account is frozen',
  [MINT_DECIMALS_MISMATCH]: 'The provided decimals value different from the Mint decimals',
  [NON_NATIVE_NOT_SUPPORTED]: 'Instruction does not support non-native tokens',
  [IMMUTABLE_OWNER_ERROR]: 'The owner authority cannot be changed',
};

/** Logs an error of the token program and returns it. */
export function failed(call: Invocation, code: number): InstructionFailureError {
  call.log(`Program log: Error: ${messages[code]}`);
  return custom(code);
}
