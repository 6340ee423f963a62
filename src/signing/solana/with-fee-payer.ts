import { base58ToBytes, bytesToBase58, concatBytes } from '../../crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';
import { type CompiledInstruction, decodeSolanaTransaction, type SolanaTransaction } from './wire.ts';

/**
 * Inserts a fee payer as the first account of a transaction and shifts all account indexes by one. Clears the
 * signatures, because the message changes.
 *
 * @param feePayer base58 of 32 bytes.
 * Throws InvalidSolanaTransactionError when the fee payer is already an account of the transaction.
 */
export function withFeePayer(wire: Uint8Array, feePayer: string): Uint8Array {
  const transaction = decodeSolanaTransaction(wire);
  if (transaction.staticKeys.some((key) => bytesToBase58(key) === feePayer)) {
    throw new InvalidSolanaTransactionError(
      '/transaction',
      `expected a transaction without the account \`${feePayer}\``,
    );
  }
  const signatures = transaction.requiredSignatures + 1;
  const message = messageOf(transaction, base58ToBytes(feePayer));
  return concatBytes(compact(signatures), new Uint8Array(64 * signatures), message);
}

/** Fills a signature slot. `slot`: the signer's index among the required signers. */
export function withSignature(wire: Uint8Array, slot: number, signature: Uint8Array): Uint8Array {
  const { message, requiredSignatures } = decodeSolanaTransaction(wire);
  const signed = wire.slice();
  signed.set(signature, wire.length - message.length - 64 * (requiredSignatures - slot));
  return signed;
}

// [0x80, version 0 only] || header || keys || blockhash || instructions || [lookups, version 0 only]
function messageOf(transaction: SolanaTransaction, feePayer: Uint8Array): Uint8Array {
  const { version, requiredSignatures, readonlySigned, readonlyUnsigned, staticKeys } = transaction;
  const { recentBlockhash, instructions, lookups } = transaction;
  return concatBytes(
    version === 0 ? Uint8Array.of(0x80) : new Uint8Array(),
    Uint8Array.of(requiredSignatures + 1, readonlySigned, readonlyUnsigned),
    compact(staticKeys.length + 1),
    feePayer,
    ...staticKeys,
    recentBlockhash,
    compact(instructions.length),
    ...instructions.map(shifted),
    ...(version === 0 ? [compact(lookups.length)] : []),
    ...lookups.map(({ table, writableIndexes, readonlyIndexes }) =>
      concatBytes(table, sized(writableIndexes), sized(readonlyIndexes)),
    ),
  );
}

function shifted({ programIndex, accountIndexes, data }: CompiledInstruction): Uint8Array {
  if (accountIndexes.includes(255)) {
    throw new InvalidSolanaTransactionError('/transaction', 'expected at most 255 accounts, got 256');
  }
  const accounts = accountIndexes.map((index) => index + 1);
  return concatBytes(Uint8Array.of(programIndex + 1), sized(accounts), sized(data));
}

function sized(bytes: Uint8Array): Uint8Array {
  return concatBytes(compact(bytes.length), bytes);
}

// compact-u16: seven bits per byte, least significant first
function compact(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Uint8Array.of(...bytes, rest);
}
