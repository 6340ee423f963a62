import {
  isMintSize,
  isTokenAccountSize,
  type MintData,
  mintBytes,
  mintOf,
  type TokenAccountData,
  tokenAccountBytes,
  tokenAccountOf,
} from '../accounts.ts';
import { custom, InstructionFailureError } from '../failures.ts';
import type { Invocation } from '../runtime.ts';

// Reads and writes the accounts of the token program, and describes its errors. Source: spl-token, error.rs.

export const NOT_RENT_EXEMPT = 0;
export const INSUFFICIENT_FUNDS = 1;
const INVALID_MINT = 2;
export const MINT_MISMATCH = 3;
const OWNER_MISMATCH = 4;
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

/** Returns an initialized token account. Which program owns it is checked when it is changed. */
export function tokenAccount(call: Invocation, address: string): TokenAccountData {
  const account = call.account(address);
  if (!isTokenAccountSize(account.data, call.program))
    throw new InstructionFailureError('InvalidAccountData');
  const found = tokenAccountOf({ ...account, owner: call.program });
  if (found === undefined) throw new InstructionFailureError('UninitializedAccount');
  return found;
}

export function mintAt(call: Invocation, address: string): MintData {
  const account = call.account(address);
  if (!isMintSize(account.data, call.program)) throw new InstructionFailureError('InvalidAccountData');
  const found = mintOf({ ...account, owner: call.program });
  if (found === undefined) throw new InstructionFailureError('UninitializedAccount');
  return found;
}

export function requireMint(call: Invocation, address: string): MintData {
  const mint = mintOf({ ...call.account(address), owner: call.program });
  if (mint === undefined) throw failed(call, INVALID_MINT);
  return mint;
}

export function requireOwned(call: Invocation, ...addresses: string[]): void {
  for (const address of addresses) {
    if (call.account(address).owner !== call.program) throw new InstructionFailureError('IncorrectProgramId');
  }
}

export function write(call: Invocation, address: string, account: TokenAccountData): void {
  const before = call.account(address);
  call.set(address, { ...before, data: tokenAccountBytes(account, before.data) });
}

export function writeMint(call: Invocation, address: string, mint: MintData): void {
  const before = call.account(address);
  call.set(address, { ...before, data: mintBytes(mint, before.data) });
}

export function requireAuthority(call: Invocation, expected: string, authority: string): void {
  if (expected !== authority) throw failed(call, OWNER_MISMATCH);
  if (!call.isSigner(authority)) throw new InstructionFailureError('MissingRequiredSignature');
}

export function requireDecimals(
  call: Invocation,
  { mint }: TokenAccountData,
  { address, decimals }: { address: string; decimals: number },
): void {
  if (mint !== address) throw failed(call, MINT_MISMATCH);
  if (mintAt(call, address).decimals !== decimals) throw failed(call, MINT_DECIMALS_MISMATCH);
}
