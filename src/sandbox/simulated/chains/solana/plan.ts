import { ed25519Verify } from '../../../../engine/crypto/ed25519.ts';
import { bytesToBase58, bytesToHex } from '../../../../engine/crypto/encoding.ts';
import { decodeSolanaTransaction, type SolanaTransaction } from '../../../../engine/signing/solana/wire.ts';
import { type Sentinel, sentinelOf } from '../sentinels.ts';

/** One instruction with its accounts resolved to base58. */
export interface SolanaInstructionPlan {
  readonly programId: string;
  readonly accounts: readonly string[];
  readonly dataHex: string;
}

/** A decoded Solana transaction, ready for execution. */
export interface SolanaPlan {
  readonly feePayer: string;
  readonly signers: readonly string[];
  /** Writable static accounts. */
  readonly writable: readonly string[];
  readonly blockhash: string;
  readonly signatureCount: number;
  readonly instructions: readonly SolanaInstructionPlan[];
  /** Whether it uses address lookup tables, which simulated chains do not have. */
  readonly usesTables: boolean;
  readonly sentinel: Sentinel | null;
}

export interface DecodedSolana {
  /** Base58 of the first signature. */
  readonly hash: string;
  readonly isSigned: boolean;
  readonly plan: SolanaPlan;
}

/** Decodes wire bytes into an execution plan. Throws InvalidSolanaTransactionError. */
export function decodeSolana(wire: Uint8Array): DecodedSolana {
  const transaction = decodeSolanaTransaction(wire);
  const keys = transaction.staticKeys.map(bytesToBase58);
  const instructions = transaction.instructions.map(({ programIndex, accountIndexes, data }) => ({
    programId: keys[programIndex] ?? '',
    accounts: [...accountIndexes].map((index) => keys[index] ?? ''),
    dataHex: bytesToHex(data),
  }));
  return {
    hash: bytesToBase58(transaction.signatures[0]!),
    isSigned: isSigned(transaction),
    plan: {
      feePayer: keys[0]!,
      signers: keys.slice(0, transaction.requiredSignatures),
      writable: keys.filter((_, index) => isWritable(transaction, index)),
      blockhash: bytesToBase58(transaction.recentBlockhash),
      signatureCount: transaction.requiredSignatures,
      instructions,
      usesTables: transaction.lookups.length > 0,
      sentinel: sentinelOf(transaction.staticKeys.map(bytesToHex)) ?? null,
    },
  };
}

function isSigned({ signatures, staticKeys, message }: SolanaTransaction): boolean {
  return signatures.every((signature, index) => ed25519Verify(signature, message, staticKeys[index]!));
}

// Key order: writable signers, read-only signers, other writable keys, other read-only keys.
function isWritable(transaction: SolanaTransaction, index: number): boolean {
  const { requiredSignatures, readonlySigned, readonlyUnsigned, staticKeys } = transaction;
  if (index < requiredSignatures) return index < requiredSignatures - readonlySigned;
  return index < staticKeys.length - readonlyUnsigned;
}
