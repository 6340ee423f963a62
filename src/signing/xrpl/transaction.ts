import { decode, encode, encodeForSigning } from 'ripple-binary-codec';
import { InvalidTransactionError } from '../signing-errors.ts';

/** A transaction as JSON in the ledger's own field names. */
export type XrplTransaction = Readonly<Record<string, unknown>>;

/** "STX\0", the prefix of what a single signer signs. */
const SIGNING_PREFIX = '53545800';
const HEX = /^(?:[0-9A-F]{2})+$/;

/**
 * Hex of a serialized transaction, with or without the signing prefix, to its fields.
 * Throws InvalidTransactionError when it does not encode back to the same bytes. Source: XRPL docs, serialization format.
 */
export function decodeXrplTransaction(hex: string): XrplTransaction {
  const upper = hex.toUpperCase();
  // A serialized transaction begins with its type's field code, 12, so the prefix cannot be one.
  const blob = upper.startsWith(SIGNING_PREFIX) ? upper.slice(SIGNING_PREFIX.length) : upper;
  if (!HEX.test(blob)) throw new InvalidTransactionError('/transaction', 'expected whole bytes of hex');
  try {
    const transaction = decode(blob);
    if (encode(transaction) === blob && typeof transaction.TransactionType === 'string') return transaction;
  } catch {
    // refused below
  }
  throw new InvalidTransactionError('/transaction', 'expected one transaction in canonical serialization');
}

/** The bytes to be signed, with the prefix, as upper-case hex. */
export function encodeXrplForSigning(transaction: XrplTransaction): string {
  return encodeForSigning({ ...transaction });
}

/** The blob as upper-case hex. */
export function encodeXrplTransaction(transaction: XrplTransaction): string {
  return encode({ ...transaction });
}
