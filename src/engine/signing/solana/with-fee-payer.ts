import { base58ToBytes, bytesToBase58, concatBytes, littleEndian } from '../../crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';
import { type CompiledInstruction, decodeSolanaTransaction, type SolanaTransaction } from './wire.ts';

/**
 * Inserts a fee payer as the first account of a transaction and shifts all account indexes by one. Clears the
 * signatures, because the message changes.
 *
 * @param feePayer base58 of 32 bytes.
 * @throws InvalidSolanaTransactionError when the fee payer is already an account of the transaction.
 */
export function withFeePayer(wire: Uint8Array, feePayer: string): Uint8Array {
  const transaction = decodeSolanaTransaction(wire);
  if (transaction.staticKeys.some((key) => bytesToBase58(key) === feePayer)) {
    throw new InvalidSolanaTransactionError(
      '/transaction',
      `expected a transaction without the account \`${feePayer}\``,
    );
  }
  const signatures = new Uint8Array(64 * (transaction.requiredSignatures + 1));
  const payer = base58ToBytes(feePayer);
  if (transaction.version === 1) return concatBytes(messageOfVersion1(transaction, payer), signatures);
  return concatBytes(compact(transaction.requiredSignatures + 1), signatures, messageOf(transaction, payer));
}

/**
 * Fills a signature slot.
 *
 * @param slot the signer's index among the required signers.
 */
export function withSignature(wire: Uint8Array, slot: number, signature: Uint8Array): Uint8Array {
  const signed = wire.slice();
  // The decoded fields are views into the wire bytes, so this changes the transaction.
  decodeSolanaTransaction(signed).signatures[slot]?.set(signature);
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

// Source: SIMD-0385
function messageOfVersion1(transaction: SolanaTransaction, feePayer: Uint8Array): Uint8Array {
  const { requiredSignatures, readonlySigned, readonlyUnsigned, staticKeys } = transaction;
  const { recentBlockhash, instructions, config } = transaction;
  return concatBytes(
    Uint8Array.of(0x81, requiredSignatures + 1, readonlySigned, readonlyUnsigned),
    config.subarray(0, 4),
    recentBlockhash,
    Uint8Array.of(instructions.length, staticKeys.length + 1),
    feePayer,
    ...staticKeys,
    config.subarray(4),
    ...instructions.map(({ programIndex, accountIndexes, data }) =>
      concatBytes(
        Uint8Array.of(programIndex + 1, accountIndexes.length),
        littleEndian(BigInt(data.length), 2),
      ),
    ),
    ...instructions.flatMap(({ accountIndexes, data }) => [accountIndexes.map((index) => index + 1), data]),
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
