import { decode, encode, encodeForSigning } from 'ripple-binary-codec';
import { hexToBytes } from '../../crypto/encoding.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { refuseLargeXrpl } from './refuse-large.ts';

/** A transaction as JSON with the ledger's field names. */
export type XrplTransaction = Readonly<Record<string, unknown>>;

/** "STX\0", the prefix of the bytes that a single signer signs. */
const SIGNING_PREFIX = '53545800';
const HEX = /^(?:[0-9A-F]{2})+$/;

/**
 * Decodes a serialized transaction from hex, with or without the signing prefix.
 * Throws InvalidTransactionError when it does not encode to the same bytes again. Source: XRPL docs, serialization
 * format.
 */
export function decodeXrplTransaction(hex: string): XrplTransaction {
  const upper = hex.toUpperCase();
  // A serialized transaction starts with field code 12 of its type, so it cannot start with the prefix.
  const blob = upper.startsWith(SIGNING_PREFIX) ? upper.slice(SIGNING_PREFIX.length) : upper;
  if (!HEX.test(blob))
    throw new InvalidTransactionError('/transaction', 'expected an even number of hex digits');
  try {
    refuseLargeXrpl(hexToBytes(blob));
    const transaction = decode(blob);
    if (encode(transaction) === blob && typeof transaction.TransactionType === 'string') return transaction;
  } catch (error) {
    if (error instanceof InvalidTransactionError) throw error;
    // Anything else is the codec's and refused below.
  }
  throw new InvalidTransactionError('/transaction', 'expected one transaction in canonical serialization');
}

/** The bytes to sign, including the prefix, as upper-case hex. */
export function encodeXrplForSigning(transaction: XrplTransaction): string {
  return encodeForSigning({ ...transaction });
}

/** The serialized transaction as upper-case hex. */
export function encodeXrplTransaction(transaction: XrplTransaction): string {
  return encode({ ...transaction });
}
