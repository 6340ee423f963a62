import { base58ToBytes, bytesToBase58, concatBytes } from '../../crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';
import { type CompiledInstruction, decodeSolanaTransaction, type SolanaTransaction } from './wire.ts';

/**
 * The same transaction with somebody else in front of its accounts, who pays the fee. Everybody's index grows by one;
 * the signatures are taken away, since the message is another one.
 *
 * @param feePayer base58 of 32 bytes.
 * Throws InvalidSolanaTransactionError where the fee payer has another part in the transaction.
 */
export function withFeePayer(wire: Uint8Array, feePayer: string): Uint8Array {
  const transaction = decodeSolanaTransaction(wire);
  if (transaction.staticKeys.some((key) => bytesToBase58(key) === feePayer)) {
    throw new InvalidSolanaTransactionError(
      '/transaction',
      `expected a transaction that \`${feePayer}\` has no part in`,
    );
  }
  const signatures = transaction.requiredSignatures + 1;
  const message = messageOf(transaction, base58ToBytes(feePayer));
  return concatBytes(compact(signatures), new Uint8Array(64 * signatures), message);
}

/** Fills a signer's slot. `slot`: its place among the signers. */
export function withSignature(wire: Uint8Array, slot: number, signature: Uint8Array): Uint8Array {
  const { message, requiredSignatures } = decodeSolanaTransaction(wire);
  const signed = wire.slice();
  signed.set(signature, wire.length - message.length - 64 * (requiredSignatures - slot));
  return signed;
}

// [0x80 of version 0] || header || keys || blockhash || instructions || [lookups]
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
    throw new InvalidSolanaTransactionError('/transaction', 'expected room for one more account');
  }
  const accounts = accountIndexes.map((index) => index + 1);
  return concatBytes(Uint8Array.of(programIndex + 1), sized(accounts), sized(data));
}

function sized(bytes: Uint8Array): Uint8Array {
  return concatBytes(compact(bytes.length), bytes);
}

// compact-u16: seven bits a byte, low first
function compact(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Uint8Array.of(...bytes, rest);
}
