import { base58ToBytes, concatBytes, littleEndian } from '../../../../../engine/crypto/encoding.ts';
import { associatedTokenAddress } from '../../../../../engine/signing/solana/associated-token.ts';
import { isTokenProgram, rentExemption, SYSTEM_PROGRAM, tokenAccountOf } from '../accounts.ts';
import { custom, InstructionFailureError } from '../failures.ts';
import type { AccountMeta } from '../plan.ts';
import type { Invocation } from '../runtime.ts';
import { accountSize } from './token.ts';

const GET_ACCOUNT_DATA_SIZE = 21;
const INITIALIZE_IMMUTABLE_OWNER = 22;
const INITIALIZE_ACCOUNT_3 = 18;
const IMMUTABLE_OWNER_EXTENSION = 7;
// The error code of AssociatedTokenAccountError.
const INVALID_OWNER = 0;

/** Runs the associated token program: Create (no data or 0) and CreateIdempotent (1). Source: processor.rs. */
export function runAssociatedToken(call: Invocation): void {
  const [kind = 0] = call.data;
  if (kind > 1) throw new InstructionFailureError('InvalidInstructionData');
  const isIdempotent = kind === 1;
  call.log(`Program log: ${isIdempotent ? 'CreateIdempotent' : 'Create'}`);
  const [payer, address, owner] = [call.at(0), call.at(1), call.at(2)];
  const [mint, , program] = [call.at(3), call.at(4), call.at(5)];
  if (associatedTokenAddress(owner, mint, program) !== address) {
    call.log('Program log: Error: Associated address does not match seed derivation');
    throw new InstructionFailureError('InvalidSeeds');
  }
  const existing = call.account(address);
  if (isIdempotent && existing.owner === program) {
    const known = tokenAccountOf(existing);
    if (known !== undefined) {
      if (known.owner !== owner) throw custom(INVALID_OWNER);
      if (known.mint !== mint) throw new InstructionFailureError('InvalidAccountData');
      return;
    }
  }
  if (existing.owner !== SYSTEM_PROGRAM) throw new InstructionFailureError('IllegalOwner');
  if (!isTokenProgram(program)) throw new InstructionFailureError('IncorrectProgramId');
  const readOnly = (each: string): AccountMeta => ({ address: each, isSigner: false, isWritable: false });
  const writable: AccountMeta = { address, isSigner: false, isWritable: true };
  call.invoke({
    ...{ program, accounts: [readOnly(mint)] },
    data: Uint8Array.of(GET_ACCOUNT_DATA_SIZE, IMMUTABLE_OWNER_EXTENSION, 0),
  });
  createDerived(call, { payer, address, program, size: accountSize(program) });
  call.log('Program log: Initialize the associated token account');
  call.invoke({ program, accounts: [writable], data: Uint8Array.of(INITIALIZE_IMMUTABLE_OWNER) });
  call.invoke({
    ...{ program, accounts: [writable, readOnly(mint)] },
    data: concatBytes(Uint8Array.of(INITIALIZE_ACCOUNT_3), base58ToBytes(owner)),
  });
}

/**
 * Creates an account at a derived address. If it already has lamports, it is topped up, allocated and assigned
 * instead.
 */
function createDerived(
  call: Invocation,
  { payer, address, program, size }: { payer: string; address: string; program: string; size: number },
): void {
  const { lamports } = call.account(address);
  const rent = rentExemption(size);
  const from = { address: payer, isSigner: call.isSigner(payer), isWritable: true };
  const created = { address, isSigner: true, isWritable: true };
  const system = (kind: number, accounts: readonly AccountMeta[], ...data: Uint8Array[]): void =>
    call.invoke({
      program: SYSTEM_PROGRAM,
      accounts,
      data: concatBytes(littleEndian(BigInt(kind), 4), ...data),
    });
  if (!from.isSigner) {
    call.log(`${payer}'s signer privilege escalated`);
    throw new InstructionFailureError('PrivilegeEscalation');
  }
  const [space, assigned] = [littleEndian(BigInt(size), 8), base58ToBytes(program)];
  if (lamports === 0n) {
    system(0, [from, created], littleEndian(rent, 8), space, assigned);
    return;
  }
  if (rent > lamports) {
    system(2, [from, { ...created, isSigner: false }], littleEndian(rent - lamports, 8));
  }
  system(8, [created], space);
  system(1, [created], assigned);
}
