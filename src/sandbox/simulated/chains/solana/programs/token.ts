import {
  type ByteReader,
  createByteReader,
  InvalidBytesError,
} from '../../../../../engine/crypto/byte-reader.ts';
import { bytesToBase58, littleEndian } from '../../../../../engine/crypto/encoding.ts';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../../../../../engine/signing/solana/associated-token.ts';
import {
  isMintSize,
  isTokenAccountSize,
  mintOf,
  NATIVE_MINT,
  NO_DATA,
  rentExemption,
  type SolanaAccount,
  SYSTEM_PROGRAM,
  TOKEN_ACCOUNT_BYTES,
  type TokenAccountData,
  tokenAccountOf,
} from '../accounts.ts';
import { InstructionFailureError } from '../failures.ts';
import type { Invocation } from '../runtime.ts';
import {
  ACCOUNT_FROZEN,
  ALREADY_IN_USE,
  AUTHORITY_TYPE_NOT_SUPPORTED,
  FIXED_SUPPLY,
  failed,
  IMMUTABLE_OWNER_ERROR,
  INSUFFICIENT_FUNDS,
  INVALID_INSTRUCTION,
  INVALID_STATE,
  MINT_CANNOT_FREEZE,
  MINT_DECIMALS_MISMATCH,
  MINT_MISMATCH,
  mintAt,
  NATIVE_NOT_SUPPORTED,
  NON_NATIVE_HAS_BALANCE,
  NON_NATIVE_NOT_SUPPORTED,
  NOT_RENT_EXEMPT,
  OVERFLOW,
  requireAuthority,
  requireDecimals,
  requireMint,
  requireOwned,
  tokenAccount,
  write,
  writeMint,
} from './token-state.ts';

/**
 * The token program, and Token-2022 with only one extension, the immutable owner of associated accounts. Multisigs
 * and batches need the package `litesvm`.
 */

const U64_MAX = 2n ** 64n - 1n;
/** Authority types 0 and 1 are those of mints, 2 and 3 those of token accounts. */
const MAX_AUTHORITY_TYPE = 3;
const INCINERATOR = '1nc1nerator11111111111111111111111111111111';
/**
 * The end of a Token-2022 account: the account type, then the extension for an immutable owner, which has no content.
 */
const IMMUTABLE_OWNER = Uint8Array.of(2, 7, 0, 0, 0);

export function accountSize(program: string): number {
  return program === TOKEN_2022_PROGRAM ? TOKEN_ACCOUNT_BYTES + IMMUTABLE_OWNER.length : TOKEN_ACCOUNT_BYTES;
}

// The index of the rent sysvar among the accounts. Older instructions need it.
const RENT_OF_MINT = 1;
const RENT_OF_ACCOUNT = 3;
const RENT_OF_ACCOUNT_2 = 2;

type Handler = (call: Invocation, reader: ByteReader) => void;

// The handlers by discriminator. Source: spl-token instruction.rs.
const handlers: Readonly<Record<number, Handler>> = {
  0: (call, reader) => {
    call.at(RENT_OF_MINT);
    initializeMint(call, reader);
  },
  1: (call) => {
    call.at(RENT_OF_ACCOUNT);
    initializeAccount(call, call.at(2));
  },
  3: (call, reader) => transfer(call, reader.u64(), undefined),
  4: (call, reader) => approve(call, reader.u64(), undefined),
  5: (call) => revoke(call),
  6: (call, reader) => setAuthority(call, reader),
  7: (call, reader) => mintTo(call, reader.u64(), undefined),
  8: (call, reader) => burn(call, reader.u64(), undefined),
  9: (call) => close(call),
  10: (call) => freeze(call, 'frozen'),
  11: (call) => freeze(call, 'initialized'),
  12: (call, reader) => transfer(call, reader.u64(), reader.u8()),
  13: (call, reader) => approve(call, reader.u64(), reader.u8()),
  14: (call, reader) => mintTo(call, reader.u64(), reader.u8()),
  15: (call, reader) => burn(call, reader.u64(), reader.u8()),
  16: (call, reader) => {
    call.at(RENT_OF_ACCOUNT_2);
    initializeAccount(call, bytesToBase58(reader.bytes(32)));
  },
  17: (call) => syncNative(call),
  18: (call, reader) => initializeAccount(call, bytesToBase58(reader.bytes(32))),
  20: (call, reader) => initializeMint(call, reader),
  21: (call) => {
    const mint = call.at(0);
    requireOwned(call, mint);
    requireMint(call, mint);
    call.return(littleEndian(BigInt(accountSize(call.program)), 8));
  },
  22: (call) => initializeImmutableOwner(call),
};

export function runToken(call: Invocation): void {
  const [kind] = call.data;
  const handler = kind === undefined ? undefined : handlers[kind];
  // CHOICE: an unsupported instruction fails instead of being ignored.
  if (handler === undefined) throw failed(call, INVALID_INSTRUCTION);
  const reader = createByteReader(call.data.subarray(1));
  try {
    handler(call, reader);
  } catch (error) {
    if (error instanceof InvalidBytesError) throw failed(call, INVALID_INSTRUCTION);
    throw error;
  }
}

function initializeMint(call: Invocation, reader: ByteReader): void {
  const decimals = reader.u8();
  const mintAuthority = bytesToBase58(reader.bytes(32));
  const freezeAuthority = readOption(reader);
  const address = call.at(0);
  const account = call.account(address);
  if (!isMintSize(account.data, call.program)) throw new InstructionFailureError('InvalidAccountData');
  if (mintOf({ ...account, owner: call.program }) !== undefined) throw failed(call, ALREADY_IN_USE);
  requireRent(call, account);
  const extensions = account.data.subarray(82);
  writeMint(call, address, { mintAuthority, supply: 0n, decimals, freezeAuthority, extensions });
}

function requireRent(call: Invocation, { lamports, data }: SolanaAccount): void {
  if (lamports < rentExemption(data.length)) throw failed(call, NOT_RENT_EXEMPT);
}

function readOption(reader: ByteReader): string | null {
  const option = reader.u8();
  if (option > 1) throw new InvalidBytesError('expected 0 or 1');
  return option === 1 ? bytesToBase58(reader.bytes(32)) : null;
}

function initializeAccount(call: Invocation, owner: string): void {
  const [address, mint] = [call.at(0), call.at(1)];
  const account = call.account(address);
  if (!isTokenAccountSize(account.data, call.program))
    throw new InstructionFailureError('InvalidAccountData');
  if (tokenAccountOf({ ...account, owner: call.program }) !== undefined) throw failed(call, ALREADY_IN_USE);
  requireRent(call, account);
  const isNative = mint === NATIVE_MINT && call.program === TOKEN_PROGRAM;
  if (!isNative) {
    requireOwned(call, mint);
    requireMint(call, mint);
  }
  const reserve = rentExemption(account.data.length);
  write(call, address, {
    ...{ mint, owner, delegate: null, delegatedAmount: 0n, state: 'initialized', closeAuthority: null },
    amount: isNative ? account.lamports - reserve : 0n,
    nativeReserve: isNative ? reserve : null,
    extensions: account.data.subarray(TOKEN_ACCOUNT_BYTES),
  });
}

function initializeImmutableOwner(call: Invocation): void {
  const address = call.at(0);
  const account = call.account(address);
  if (!isTokenAccountSize(account.data, call.program))
    throw new InstructionFailureError('InvalidAccountData');
  if (tokenAccountOf({ ...account, owner: call.program }) !== undefined) throw failed(call, ALREADY_IN_USE);
  if (call.program === TOKEN_PROGRAM) {
    call.log('Program log: Please upgrade to SPL Token 2022 for immutable owner support');
    return;
  }
  if (account.data.length < accountSize(call.program))
    throw new InstructionFailureError('InvalidAccountData');
  const data = new Uint8Array(account.data);
  data.set(IMMUTABLE_OWNER, TOKEN_ACCOUNT_BYTES);
  call.set(address, { ...account, data });
}

function transfer(call: Invocation, amount: bigint, decimals: number | undefined): void {
  const isChecked = decimals !== undefined;
  const from = call.at(0);
  const [to, authority] = isChecked ? [call.at(2), call.at(3)] : [call.at(1), call.at(2)];
  const source = tokenAccount(call, from);
  const isSelf = from === to;
  const target = isSelf ? source : tokenAccount(call, to);
  if (source.state === 'frozen' || target.state === 'frozen') throw failed(call, ACCOUNT_FROZEN);
  if (source.amount < amount) throw failed(call, INSUFFICIENT_FUNDS);
  if (source.mint !== target.mint) throw failed(call, MINT_MISMATCH);
  if (isChecked) requireDecimals(call, source, { address: call.at(1), decimals });
  const spent = spend(call, source, { authority, amount, isSelf });
  if (isSelf || amount === 0n) requireOwned(call, from, to);
  if (isSelf) return;
  write(call, from, { ...spent, amount: source.amount - amount });
  if (target.amount + amount > U64_MAX) throw failed(call, OVERFLOW);
  write(call, to, { ...target, amount: target.amount + amount });
  if (source.nativeReserve !== null && amount > 0n) moveLamports(call, from, to, amount);
}

/** Checks the spender's authority, and decreases the allowance of a delegate. */
function spend(
  call: Invocation,
  source: TokenAccountData,
  { authority, amount, isSelf }: { authority: string; amount: bigint; isSelf: boolean },
): TokenAccountData {
  if (source.delegate !== authority) {
    requireAuthority(call, source.owner, authority);
    return source;
  }
  requireAuthority(call, source.delegate, authority);
  const delegatedAmount = source.delegatedAmount - amount;
  if (delegatedAmount < 0n) throw failed(call, INSUFFICIENT_FUNDS);
  if (isSelf) return source;
  return { ...source, delegatedAmount, delegate: delegatedAmount === 0n ? null : source.delegate };
}

function moveLamports(call: Invocation, from: string, to: string, amount: bigint): void {
  const source = call.account(from);
  call.set(from, { ...source, lamports: source.lamports - amount });
  const target = call.account(to);
  call.set(to, { ...target, lamports: target.lamports + amount });
}

function approve(call: Invocation, amount: bigint, decimals: number | undefined): void {
  const isChecked = decimals !== undefined;
  const address = call.at(0);
  const [delegate, owner] = isChecked ? [call.at(2), call.at(3)] : [call.at(1), call.at(2)];
  const account = tokenAccount(call, address);
  if (account.state === 'frozen') throw failed(call, ACCOUNT_FROZEN);
  if (isChecked) requireDecimals(call, account, { address: call.at(1), decimals });
  requireAuthority(call, account.owner, owner);
  write(call, address, { ...account, delegate, delegatedAmount: amount });
}

function revoke(call: Invocation): void {
  const address = call.at(0);
  const account = tokenAccount(call, address);
  if (account.state === 'frozen') throw failed(call, ACCOUNT_FROZEN);
  const authority = call.at(1);
  requireAuthority(call, account.delegate === authority ? authority : account.owner, authority);
  write(call, address, { ...account, delegate: null, delegatedAmount: 0n });
}

function setAuthority(call: Invocation, reader: ByteReader): void {
  const kind = reader.u8();
  if (kind > MAX_AUTHORITY_TYPE) throw failed(call, INVALID_INSTRUCTION);
  const next = readOption(reader);
  const [address, authority] = [call.at(0), call.at(1)];
  const { data } = call.account(address);
  if (isTokenAccountSize(data, call.program)) {
    const account = tokenAccount(call, address);
    if (account.state === 'frozen') throw failed(call, ACCOUNT_FROZEN);
    if (kind === 2) {
      requireAuthority(call, account.owner, authority);
      if (next === null) throw failed(call, INVALID_INSTRUCTION);
      if (account.extensions.length > 0) throw failed(call, IMMUTABLE_OWNER_ERROR);
      const owned = { ...account, owner: next, delegate: null, delegatedAmount: 0n };
      write(call, address, account.nativeReserve === null ? owned : { ...owned, closeAuthority: null });
    } else if (kind === 3) {
      requireAuthority(call, account.closeAuthority ?? account.owner, authority);
      write(call, address, { ...account, closeAuthority: next });
    } else {
      throw failed(call, AUTHORITY_TYPE_NOT_SUPPORTED);
    }
    return;
  }
  if (!isMintSize(data, call.program)) throw new InstructionFailureError('InvalidArgument');
  const mint = mintAt(call, address);
  if (kind === 0) {
    if (mint.mintAuthority === null) throw failed(call, FIXED_SUPPLY);
    requireAuthority(call, mint.mintAuthority, authority);
    writeMint(call, address, { ...mint, mintAuthority: next });
  } else if (kind === 1) {
    if (mint.freezeAuthority === null) throw failed(call, MINT_CANNOT_FREEZE);
    requireAuthority(call, mint.freezeAuthority, authority);
    writeMint(call, address, { ...mint, freezeAuthority: next });
  } else {
    throw failed(call, AUTHORITY_TYPE_NOT_SUPPORTED);
  }
}

function mintTo(call: Invocation, amount: bigint, decimals: number | undefined): void {
  const [address, to, authority] = [call.at(0), call.at(1), call.at(2)];
  const target = tokenAccount(call, to);
  if (target.state === 'frozen') throw failed(call, ACCOUNT_FROZEN);
  if (target.nativeReserve !== null) throw failed(call, NATIVE_NOT_SUPPORTED);
  if (target.mint !== address) throw failed(call, MINT_MISMATCH);
  const mint = mintAt(call, address);
  if (decimals !== undefined && decimals !== mint.decimals) throw failed(call, MINT_DECIMALS_MISMATCH);
  if (mint.mintAuthority === null) throw failed(call, FIXED_SUPPLY);
  requireAuthority(call, mint.mintAuthority, authority);
  if (amount === 0n) {
    requireOwned(call, address, to);
    return;
  }
  const supply = mint.supply + amount;
  if (supply > U64_MAX) throw failed(call, OVERFLOW);
  writeMint(call, address, { ...mint, supply });
  write(call, to, { ...target, amount: target.amount + amount });
}

function burn(call: Invocation, amount: bigint, decimals: number | undefined): void {
  const [from, address, authority] = [call.at(0), call.at(1), call.at(2)];
  const source = tokenAccount(call, from);
  const mint = mintAt(call, address);
  if (source.state === 'frozen') throw failed(call, ACCOUNT_FROZEN);
  if (source.nativeReserve !== null) throw failed(call, NATIVE_NOT_SUPPORTED);
  if (source.amount < amount) throw failed(call, INSUFFICIENT_FUNDS);
  if (source.mint !== address) throw failed(call, MINT_MISMATCH);
  if (decimals !== undefined && decimals !== mint.decimals) throw failed(call, MINT_DECIMALS_MISMATCH);
  const isOwnerless = source.owner === SYSTEM_PROGRAM || source.owner === INCINERATOR;
  const spent = isOwnerless ? source : spend(call, source, { authority, amount, isSelf: false });
  if (amount === 0n) {
    requireOwned(call, from, address);
    return;
  }
  write(call, from, { ...spent, amount: source.amount - amount });
  writeMint(call, address, { ...mint, supply: mint.supply - amount });
}

function close(call: Invocation): void {
  const [address, to, authority] = [call.at(0), call.at(1), call.at(2)];
  if (address === to) throw new InstructionFailureError('InvalidAccountData');
  const account = tokenAccount(call, address);
  if (account.nativeReserve === null && account.amount > 0n) throw failed(call, NON_NATIVE_HAS_BALANCE);
  if (account.owner === SYSTEM_PROGRAM || account.owner === INCINERATOR) {
    if (to !== INCINERATOR) throw new InstructionFailureError('InvalidAccountData');
  } else {
    requireAuthority(call, account.closeAuthority ?? account.owner, authority);
  }
  const { lamports } = call.account(address);
  call.set(address, { lamports: 0n, owner: SYSTEM_PROGRAM, executable: false, data: NO_DATA });
  const target = call.account(to);
  call.set(to, { ...target, lamports: target.lamports + lamports });
}

function freeze(call: Invocation, state: TokenAccountData['state']): void {
  const [address, mintAddress, authority] = [call.at(0), call.at(1), call.at(2)];
  const account = tokenAccount(call, address);
  if (account.state === state) throw failed(call, INVALID_STATE);
  if (account.nativeReserve !== null) throw failed(call, NATIVE_NOT_SUPPORTED);
  if (account.mint !== mintAddress) throw failed(call, MINT_MISMATCH);
  const mint = mintAt(call, mintAddress);
  if (mint.freezeAuthority === null) throw failed(call, MINT_CANNOT_FREEZE);
  requireAuthority(call, mint.freezeAuthority, authority);
  write(call, address, { ...account, state });
}

function syncNative(call: Invocation): void {
  const address = call.at(0);
  requireOwned(call, address);
  const account = tokenAccount(call, address);
  if (account.nativeReserve === null) throw failed(call, NON_NATIVE_NOT_SUPPORTED);
  const amount = call.account(address).lamports - account.nativeReserve;
  if (amount < account.amount) throw failed(call, INVALID_STATE);
  write(call, address, { ...account, amount });
}
