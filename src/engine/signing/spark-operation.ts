import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, bytesToUtf8, hexToBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import { InvalidTransactionError } from './signing-errors.ts';
import type { SparkNetworkName } from './spark.ts';

/** A Spark operation that moves sats or tokens. Amounts are decimal strings in sats or in the token's base units. */
export interface SparkOperation {
  /** A random id, which makes every operation unique. */
  readonly id: string;
  readonly network: SparkNetworkName;
  /** The sender's compressed identity key in hex. */
  readonly owner: string;
  /** The owner's Spark address, or its deposit address for the claim of a deposit. */
  readonly from: string;
  readonly to: string;
  /** The token identifier; null for sats. */
  readonly token: string | null;
  readonly amount: string;
  /** The fee in sats, which `from` pays in addition to the amount. */
  readonly fee: string;
  /** The transaction of the deposit to claim. */
  readonly deposit: string | null;
  /** The Lightning invoice to pay, in lower case. */
  readonly invoice?: string | undefined;
}

/** An operation with its owner's signature: r || s over the SHA-256 of its JSON, in hex. */
interface SignedSparkOperation {
  readonly operation: SparkOperation;
  readonly signature: string;
}

/**
 * Signs an operation with the identity key. Returns r || s in hex.
 *
 * CHOICE: real operators run a protocol of many messages. The simulated operators accept this single signed message.
 */
export function signSparkOperation(secret: Uint8Array, operation: SparkOperation): string {
  return bytesToHex(ecBackend.sign(digestOf(operation), secret).compact);
}

/** The bytes that operators accept, and `hash`, the signed digest. */
export function encodeSparkOperation(signed: SignedSparkOperation): { bytes: Uint8Array; hash: string } {
  return { bytes: utf8ToBytes(JSON.stringify(signed)), hash: bytesToHex(digestOf(signed.operation)) };
}

/**
 * Decodes a signed operation and verifies its owner's signature.
 *
 * @throws InvalidTransactionError
 */
export function decodeSparkOperation(bytes: Uint8Array): { operation: SparkOperation; hash: string } {
  try {
    const { operation, signature } = JSON.parse(bytesToUtf8(bytes) ?? '') as SignedSparkOperation;
    const digest = digestOf(operation);
    if (ecBackend.verify(hexToBytes(signature), digest, hexToBytes(operation.owner))) {
      return { operation, hash: bytesToHex(digest) };
    }
  } catch {
    // refused below
  }
  throw new InvalidTransactionError('', 'expected an operation signed by its owner');
}

function digestOf(operation: SparkOperation): Uint8Array {
  return sha256(utf8ToBytes(JSON.stringify(operation)));
}
