import {
  type ByteReader,
  createByteReader,
  InvalidBytesError,
} from '../../../../engine/crypto/byte-reader.ts';
import { hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { associatedTokenAddress } from '../../../../engine/signing/solana/associated-token.ts';
import { type Movement, NATIVE, RevertError } from '../ledger.ts';
import type { SolanaInstructionPlan, SolanaPlan } from './plan.ts';
import { rentExemption, type SolanaState, TOKEN_ACCOUNT_BYTES, type TokenAccount } from './state.ts';

/** The execution state of one transaction. */
export interface SolanaFrame {
  readonly state: SolanaState;
  readonly plan: SolanaPlan;
  readonly movements: Movement[];
}

// By discriminator. Source: spl-token instruction.rs
const TRANSFER = 3;
const APPROVE = 4;
const REVOKE = 5;
const CLOSE_ACCOUNT = 9;
const TRANSFER_CHECKED = 12;
const APPROVE_CHECKED = 13;

const U64_MAX = 2n ** 64n - 1n;

/** Transfers lamports. Throws RevertError. */
export function moveLamports(frame: SolanaFrame, from: string, to: string, amount: bigint): void {
  requireWritable(frame, from, to);
  const { ledger } = frame.state;
  const shortfall = 'Transfer: insufficient lamports: custom program error: 0x1';
  ledger.debit({ owner: from, asset: NATIVE, amount, shortfall });
  ledger.credit(to, NATIVE, amount);
  if (amount > 0n) frame.movements.push({ sender: from, recipient: to, asset: NATIVE, amount });
}

export function requireSigner({ plan }: SolanaFrame, address: string): void {
  if (!plan.signers.includes(address)) throw new RevertError('missing required signature for instruction');
}

function requireWritable({ plan }: SolanaFrame, ...addresses: string[]): void {
  if (!addresses.every((address) => plan.writable.includes(address))) {
    throw new RevertError('instruction changed the balance of a read-only account');
  }
}

/**
 * Executes an instruction of the token program or Token-2022, limited to those that wallets use. Throws RevertError.
 */
export function runToken(frame: SolanaFrame, { programId, accounts, dataHex }: SolanaInstructionPlan): void {
  const reader = createByteReader(hexToBytes(dataHex));
  const kind = reader.u8();
  const account = (index: number): string => {
    const address = accounts[index];
    if (address === undefined) throw new RevertError('insufficient account keys for instruction');
    return address;
  };
  const tokenAccount = (index: number): TokenAccount => {
    const found = frame.state.tokenAccount(account(index));
    const program = found && frame.state.mint(found.mint)?.program;
    if (found === undefined || program !== programId)
      throw new RevertError('invalid account data for instruction');
    return found;
  };
  if (kind === TRANSFER) {
    transfer(frame, {
      from: tokenAccount(0),
      to: tokenAccount(1),
      authority: account(2),
      amount: reader.u64(),
    });
  } else if (kind === TRANSFER_CHECKED) {
    const parts = { from: tokenAccount(0), to: tokenAccount(2), authority: account(3), amount: reader.u64() };
    requireMint(frame, parts.from, { mint: account(1), decimals: reader.u8() });
    transfer(frame, parts);
  } else if (kind === APPROVE) {
    approve(frame, tokenAccount(0), { delegate: account(1), authority: account(2), amount: reader.u64() });
  } else if (kind === APPROVE_CHECKED) {
    const [from, amount] = [tokenAccount(0), reader.u64()];
    requireMint(frame, from, { mint: account(1), decimals: reader.u8() });
    approve(frame, from, { delegate: account(2), authority: account(3), amount });
  } else if (kind === REVOKE) {
    approve(frame, tokenAccount(0), { delegate: null, authority: account(1), amount: 0n });
  } else if (kind === CLOSE_ACCOUNT) {
    close(frame, tokenAccount(0), { destination: account(1), authority: account(2) });
  } else {
    // CHOICE: an unsupported instruction of a supported program fails instead of being ignored.
    throw new RevertError(`token instruction ${kind} is not simulated`);
  }
}

function requireMint(
  { state }: SolanaFrame,
  from: TokenAccount,
  { mint, decimals }: { mint: string; decimals: number },
): void {
  if (from.mint !== mint)
    throw new RevertError('Error: Account not associated with this Mint: custom program error: 0x3');
  if (state.mint(mint)?.decimals !== decimals) {
    throw new RevertError('Error: MintDecimalsMismatch: custom program error: 0x12');
  }
}

function transfer(
  frame: SolanaFrame,
  {
    from,
    to,
    authority,
    amount,
  }: { from: TokenAccount; to: TokenAccount; authority: string; amount: bigint },
): void {
  requireSigner(frame, authority);
  requireWritable(frame, from.address, to.address);
  if (from.mint !== to.mint)
    throw new RevertError('Error: Account not associated with this Mint: custom program error: 0x3');
  const isDelegate = authority !== from.owner && authority === from.delegate;
  if (authority !== from.owner && !isDelegate) {
    throw new RevertError('Error: owner does not match: custom program error: 0x4');
  }
  if (from.amount < amount || (isDelegate && from.delegatedAmount < amount)) {
    throw new RevertError('Error: insufficient funds: custom program error: 0x1');
  }
  const { state } = frame;
  const left = isDelegate ? from.delegatedAmount - amount : from.delegatedAmount;
  state.writeTokenAccount({
    ...from,
    amount: from.amount - amount,
    delegatedAmount: left,
    delegate: isDelegate && left === 0n ? null : from.delegate,
  });
  // Read again after the write: `from` and `to` may be the same account.
  const target = state.tokenAccount(to.address)!;
  if (target.amount + amount > U64_MAX)
    throw new RevertError('Error: Operation overflowed: custom program error: 0xe');
  state.writeTokenAccount({ ...target, amount: target.amount + amount });
  frame.movements.push({ sender: from.owner, recipient: to.owner, asset: from.mint, amount });
}

function approve(
  frame: SolanaFrame,
  from: TokenAccount,
  { delegate, authority, amount }: { delegate: string | null; authority: string; amount: bigint },
): void {
  requireOwner(frame, from, authority);
  frame.state.writeTokenAccount({ ...from, delegate, delegatedAmount: amount });
}

function close(
  frame: SolanaFrame,
  account: TokenAccount,
  { destination, authority }: { destination: string; authority: string },
): void {
  requireOwner(frame, account, authority);
  if (destination === account.address) throw new RevertError('invalid account data for instruction');
  if (account.amount > 0n) {
    throw new RevertError(
      'Error: Non-native account can only be closed if its balance is zero: custom program error: 0xb',
    );
  }
  const lamports = frame.state.ledger.balance(account.address, NATIVE);
  moveLamports(frame, account.address, destination, lamports);
  frame.state.removeTokenAccount(account.address);
}

function requireOwner(frame: SolanaFrame, account: TokenAccount, authority: string): void {
  requireSigner(frame, authority);
  requireWritable(frame, account.address);
  if (authority !== account.owner)
    throw new RevertError('Error: owner does not match: custom program error: 0x4');
}

/** Executes the associated token program: Create (no data or 0) and CreateIdempotent (1). Throws RevertError. */
export function runAssociatedToken(frame: SolanaFrame, { accounts, dataHex }: SolanaInstructionPlan): void {
  const isIdempotent = dataHex === '01';
  if (!['', '00', '01'].includes(dataHex)) throw new RevertError('invalid instruction data');
  const [payer, address, owner, mint, , program] = accounts;
  if (program === undefined) throw new RevertError('insufficient account keys for instruction');
  const { state } = frame;
  if (state.mint(mint!)?.program !== program) throw new RevertError('invalid account data for instruction');
  if (associatedTokenAddress(owner!, mint!, program) !== address) {
    throw new RevertError('Provided seeds do not result in a valid address');
  }
  if (state.tokenAccount(address) !== undefined) {
    if (isIdempotent) return;
    throw new RevertError('Provided owner is not allowed');
  }
  requireSigner(frame, payer!);
  const missing = rentExemption(TOKEN_ACCOUNT_BYTES) - state.ledger.balance(address, NATIVE);
  if (missing > 0n) moveLamports(frame, payer!, address, missing);
  state.openTokenAccount({ address, owner: owner!, mint: mint! });
}

/** Reads instruction data; throws RevertError when bytes are missing. */
export function readData<T>(dataHex: string, read: (reader: ByteReader) => T): T {
  try {
    return read(createByteReader(hexToBytes(dataHex)));
  } catch (error) {
    if (error instanceof InvalidBytesError) throw new RevertError('invalid instruction data');
    throw error;
  }
}
