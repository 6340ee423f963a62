import { sha256 } from '@noble/hashes/sha2.js';
import {
  type ByteReader,
  createByteReader,
  InvalidBytesError,
} from '../../../../../engine/crypto/byte-reader.ts';
import {
  base58ToBytes,
  bytesToBase58,
  bytesToUtf8,
  concatBytes,
} from '../../../../../engine/crypto/encoding.ts';
import { SYSTEM_PROGRAM } from '../accounts.ts';
import { custom, InstructionFailureError } from '../failures.ts';
import type { Invocation } from '../runtime.ts';

// The system program, without durable nonces. Source: agave, system_processor.rs and system_instruction.rs.

// Error codes of SystemError.
const ACCOUNT_IN_USE = 0;
const NEGATIVE_LAMPORTS = 1;
const INVALID_LENGTH = 3;
const SEED_MISMATCH = 5;

/** The error code of PubkeyError::MaxSeedLengthExceeded. */
const SEED_TOO_LONG = 0;

const MAX_BYTES = 10n * 1024n * 1024n;
const MAX_SEED_BYTES = 32;

/** The account to create. Its address may be derived from a base and a seed. */
interface Target {
  readonly address: string;
  /** The address that must sign for the account. */
  readonly signer: string;
}

export function runSystem(call: Invocation): void {
  const reader = createByteReader(call.data);
  const key = (): string => bytesToBase58(reader.bytes(32));
  const run = decoded(() => {
    const kind = reader.u32();
    if (kind === 0) {
      const [lamports, space, owner] = [reader.u64(), reader.u64(), key()];
      return () => createAccount(call, { lamports, space, owner, target: plain(call.at(1)) });
    }
    if (kind === 1) {
      const owner = key();
      return () => assign(call, plain(call.at(0)), owner);
    }
    if (kind === 2) {
      const lamports = reader.u64();
      return () => transfer(call, call.at(0), call.at(1), lamports);
    }
    if (kind === 3) {
      const [base, seed] = [key(), readSeed(reader)];
      const [lamports, space, owner] = [reader.u64(), reader.u64(), key()];
      return () => {
        const target = derived(call, call.at(1), { base, seed, owner });
        createAccount(call, { lamports, space, owner, target });
      };
    }
    if (kind === 8) {
      const space = reader.u64();
      return () => allocate(call, plain(call.at(0)), space);
    }
    if (kind === 9) {
      const [base, seed, space, owner] = [key(), readSeed(reader), reader.u64(), key()];
      return () => {
        const target = derived(call, call.at(0), { base, seed, owner });
        allocate(call, target, space);
        assign(call, target, owner);
      };
    }
    if (kind === 10) {
      const [base, seed, owner] = [key(), readSeed(reader), key()];
      return () => assign(call, derived(call, call.at(0), { base, seed, owner }), owner);
    }
    if (kind === 11) {
      const [lamports, seed, owner] = [reader.u64(), readSeed(reader), key()];
      return () => transferWithSeed(call, { lamports, seed, owner });
    }
    // CHOICE: an instruction that is not simulated fails instead of being ignored.
    call.log(`Program log: instruction ${kind} needs the package litesvm`);
    return undefined;
  });
  if (run === undefined) throw new InstructionFailureError('InvalidInstructionData');
  run();
}

/**
 * Reads instruction data.
 *
 * @throws InstructionFailureError
 */
function decoded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidBytesError) throw new InstructionFailureError('InvalidInstructionData');
    throw error;
  }
}

function readSeed(reader: ByteReader): string {
  const length = reader.u64();
  if (length > BigInt(reader.remaining())) throw new InvalidBytesError('expected a seed');
  const seed = bytesToUtf8(reader.bytes(Number(length)));
  if (seed === undefined) throw new InvalidBytesError('expected a seed in UTF-8');
  return seed;
}

const plain = (address: string): Target => ({ address, signer: address });

function derived(
  { log }: Invocation,
  address: string,
  { base, seed, owner }: { base: string; seed: string; owner: string },
): Target {
  const expected = addressWithSeed(base, seed, owner);
  if (expected === address) return { address, signer: base };
  log(`Create: address ${address} does not match derived address ${expected}`);
  throw custom(SEED_MISMATCH);
}

function addressWithSeed(base: string, seed: string, owner: string): string {
  const bytes = Buffer.from(seed);
  if (bytes.length > MAX_SEED_BYTES) throw custom(SEED_TOO_LONG);
  return bytesToBase58(sha256(concatBytes(base58ToBytes(base), bytes, base58ToBytes(owner))));
}

function createAccount(
  call: Invocation,
  { lamports, space, owner, target }: { lamports: bigint; space: bigint; owner: string; target: Target },
): void {
  const { address } = target;
  if (call.account(address).lamports > 0n) {
    call.log(`Create Account: account ${shown(target)} already in use`);
    throw custom(ACCOUNT_IN_USE);
  }
  allocate(call, target, space);
  assign(call, target, owner);
  transfer(call, call.at(0), address, lamports);
}

function allocate(call: Invocation, target: Target, space: bigint): void {
  const account = call.account(target.address);
  if (!call.isSigner(target.signer)) {
    call.log(`Allocate: 'to' account ${shown(target)} must sign`);
    throw new InstructionFailureError('MissingRequiredSignature');
  }
  if (account.data.length > 0 || account.owner !== SYSTEM_PROGRAM) {
    call.log(`Allocate: account ${shown(target)} already in use`);
    throw custom(ACCOUNT_IN_USE);
  }
  if (space > MAX_BYTES) {
    call.log(`Allocate: requested ${space}, max allowed ${MAX_BYTES}`);
    throw custom(INVALID_LENGTH);
  }
  call.set(target.address, { ...account, data: new Uint8Array(Number(space)) });
}

function assign(call: Invocation, target: Target, owner: string): void {
  const account = call.account(target.address);
  if (account.owner === owner) return;
  if (!call.isSigner(target.signer)) {
    call.log(`Assign: account ${shown(target)} must sign`);
    throw new InstructionFailureError('MissingRequiredSignature');
  }
  call.set(target.address, { ...account, owner });
}

function transfer(call: Invocation, from: string, to: string, lamports: bigint): void {
  if (!call.isSigner(from)) {
    call.log(`Transfer: \`from\` account ${from} must sign`);
    throw new InstructionFailureError('MissingRequiredSignature');
  }
  move(call, from, to, lamports);
}

function transferWithSeed(
  call: Invocation,
  { lamports, seed, owner }: { lamports: bigint; seed: string; owner: string },
): void {
  const [from, base, to] = [call.at(0), call.at(1), call.at(2)];
  if (!call.isSigner(base)) {
    call.log(`Transfer: 'from' account ${base} must sign`);
    throw new InstructionFailureError('MissingRequiredSignature');
  }
  const expected = addressWithSeed(base, seed, owner);
  if (expected !== from) {
    call.log(`Transfer: 'from' address ${from} does not match derived address ${expected}`);
    throw custom(SEED_MISMATCH);
  }
  move(call, from, to, lamports);
}

function move(call: Invocation, from: string, to: string, lamports: bigint): void {
  const sender = call.account(from);
  if (sender.data.length > 0) {
    call.log('Transfer: `from` must not carry data');
    throw new InstructionFailureError('InvalidArgument');
  }
  if (lamports > sender.lamports) {
    call.log(`Transfer: insufficient lamports ${sender.lamports}, need ${lamports}`);
    throw custom(NEGATIVE_LAMPORTS);
  }
  call.pay(from, sender.lamports - lamports);
  call.pay(to, call.account(to).lamports + lamports);
}

function shown({ address, signer }: Target): string {
  return `Address { address: ${address}, base: ${signer === address ? 'None' : `Some(${signer})`} }`;
}
