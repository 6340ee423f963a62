import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, bytesToUtf8, hexToBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import { InvalidTransactionError } from './signing-errors.ts';
import type { SparkNetworkName } from './spark.ts';

/** Money that moves on Spark. Amounts are decimal text of sats, or of a token's base units. */
export interface SparkOperation {
  /** Drawn for this operation, so that no two are the same. */
  readonly id: string;
  readonly network: SparkNetworkName;
  /** Identity key of who moves it, compressed, hex. */
  readonly owner: string;
  /** The owner's Spark address, or its deposit address when a deposit is taken up. */
  readonly from: string;
  readonly to: string;
  /** A token's identifier; null moves sats. */
  readonly token: string | null;
  readonly amount: string;
  /** Sats, paid by `from` beside the amount. */
  readonly fee: string;
  /** The transaction of the deposit that is taken up. */
  readonly deposit: string | null;
  /** The Lightning invoice that is paid, in lower case. */
  readonly invoice?: string | undefined;
}

/** An operation with the signature of its owner: r || s over the SHA-256 of its JSON, hex. */
export interface SignedSparkOperation {
  readonly operation: SparkOperation;
  readonly signature: string;
}

/**
 * CHOICE: the protocol of real operators is an exchange of many messages; simulated ones take one, which the identity
 * key signs. The hash is that of what was signed.
 */
export function signSparkOperation(
  secret: Uint8Array,
  operation: SparkOperation,
): { bytes: Uint8Array; hash: string } {
  const digest = digestOf(operation);
  const signed: SignedSparkOperation = {
    operation,
    signature: bytesToHex(ecBackend.sign(digest, secret).compact),
  };
  return { bytes: utf8ToBytes(JSON.stringify(signed)), hash: bytesToHex(digest) };
}

/** Bytes to a signed operation and its hash. Throws InvalidTransactionError, also when its owner did not sign it. */
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
  throw new InvalidTransactionError('', 'expected an operation that its owner has signed');
}

function digestOf(operation: SparkOperation): Uint8Array {
  return sha256(utf8ToBytes(JSON.stringify(operation)));
}
