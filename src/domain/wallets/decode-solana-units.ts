import type { ActionUnit, SolanaAccount } from '../../policy/action.ts';
import { decodeSolanaInstructions, type SolanaInstruction } from '../../signing/solana/instructions.ts';
import { parseSolanaWire } from '../../signing/solana/sign-transaction.ts';
import { decodeSolanaTransaction } from '../../signing/solana/wire.ts';

const BEHIND_TABLE: SolanaAccount = { behindLookupTable: true };

/**
 * One unit an instruction of a Solana transaction (base64 wire bytes).
 *
 * @throws InvalidSolanaTransactionError
 */
export function decodeSolanaUnits(transaction: string): readonly ActionUnit[] {
  const instructions = decodeSolanaInstructions(decodeSolanaTransaction(parseSolanaWire(transaction)));
  return instructions.map((instruction, index) => ({
    label: `instruction ${index}`,
    solanaInstruction: {
      programId: instruction.programId === '' ? BEHIND_TABLE : instruction.programId,
      program: instruction.program,
      name: instruction.instructionName,
      fields: fieldsOf(instruction),
    },
  }));
}

/** Fields whose accounts are behind a lookup table read as such: a rule on them cannot be judged. */
function fieldsOf({ fields }: SolanaInstruction): Readonly<Record<string, bigint | SolanaAccount>> {
  return fields ?? {};
}
