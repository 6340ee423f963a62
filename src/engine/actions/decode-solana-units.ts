import type { ActionUnit, SolanaAccount } from '../policy/action.ts';
import { InvalidSolanaTransactionError } from '../signing/signing-errors.ts';
import { decodeSolanaInstructions, type SolanaInstruction } from '../signing/solana/instructions.ts';
import { parseSolanaWire } from '../signing/solana/signer.ts';
import { decodeSolanaTransaction, priorityFeeOf, type SolanaTransaction } from '../signing/solana/wire.ts';

const BEHIND_TABLE: SolanaAccount = { behindLookupTable: true };

const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111';

/**
 * Returns the units of a Solana transaction (base64 wire bytes), one per instruction. In version 1, the priority fee
 * is a field and not an instruction. It is returned as the compute-budget instruction that sets it in other versions,
 * so a rule that allows only payments allows no priority fee.
 *
 * @throws InvalidSolanaTransactionError
 */
export function decodeSolanaUnits(transaction: string): readonly ActionUnit[] {
  return unitsOf(decodeSolanaTransaction(parseSolanaWire(transaction)));
}

const SIGNATURE_BYTES = 64;
const VERSION_BIT = 0x80;
const VERSION_1 = VERSION_BIT | 1;
/**
 * The first byte of off-chain messages. No transaction starts with it. Source: Solana docs, off-chain message
 * signing.
 */
const OFFCHAIN = 0xff;
/** The size of the shortest possible message: version byte || 3 header bytes || one account || blockhash. */
const SHORTEST_VERSIONED = 1 + 3 + 32 + 32;

/**
 * Returns the units of a transaction's message, which is the part that is signed. Returns undefined for other bytes.
 */
export function decodeSolanaMessageUnits(message: Uint8Array): readonly ActionUnit[] | undefined {
  const first = message[0] ?? 0;
  const isVersioned = (first & VERSION_BIT) !== 0;
  // CHOICE: unknown versions count as transactions, because validators may support them later. No text starts with
  // such a byte.
  if (first > VERSION_BIT && first < OFFCHAIN && message.length >= SHORTEST_VERSIONED) {
    const units = first === VERSION_1 ? unitsOfVersion1(message) : undefined;
    return (
      units ?? [{ label: 'transaction', undecodable: 'the bytes may be a transaction of another version' }]
    );
  }
  const signers = message[isVersioned ? 1 : 0] ?? 0;
  // A count of 128 or more takes two bytes. A transaction with that many signatures exceeds the packet size.
  if (signers === 0 || signers >= VERSION_BIT) return undefined;
  // count || 64-byte signatures || message
  const head = new Uint8Array(1 + signers * SIGNATURE_BYTES);
  head[0] = signers;
  return unitsIfDecoded(Buffer.concat([head, message]));
}

// In version 1, the signatures follow the message: message || 64-byte signatures.
function unitsOfVersion1(message: Uint8Array): readonly ActionUnit[] | undefined {
  return unitsIfDecoded(Buffer.concat([message, new Uint8Array((message[1] ?? 0) * SIGNATURE_BYTES)]));
}

function unitsIfDecoded(wire: Uint8Array): readonly ActionUnit[] | undefined {
  try {
    return unitsOf(decodeSolanaTransaction(wire));
  } catch (error) {
    if (error instanceof InvalidSolanaTransactionError) return undefined;
    throw error;
  }
}

function unitsOf(transaction: SolanaTransaction): readonly ActionUnit[] {
  const units = decodeSolanaInstructions(transaction).map((instruction, index) => ({
    label: `instruction ${index}`,
    solanaInstruction: {
      programId: instruction.programId === '' ? BEHIND_TABLE : instruction.programId,
      program: instruction.program,
      name: instruction.instructionName,
      ...(instruction.unread === undefined ? {} : { unread: instruction.unread }),
      fields: fieldsOf(instruction),
    },
  }));
  return priorityFeeOf(transaction) === 0n ? units : [...units, priorityFee];
}

const priorityFee: ActionUnit = {
  label: 'priority fee',
  solanaInstruction: { programId: COMPUTE_BUDGET, program: 'other', name: undefined, fields: {} },
};

/**
 * Returns the named fields of an instruction. Fields whose accounts come from a lookup table are marked, because
 * conditions on them are unknown.
 */
function fieldsOf({ fields = {} }: SolanaInstruction): Readonly<Record<string, bigint | SolanaAccount>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value === undefined ? BEHIND_TABLE : value]),
  );
}
