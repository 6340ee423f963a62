import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { base58xrp } from '@scure/base';
import { bytesToHex, concatBytes, hexToBytes } from '../../crypto/encoding.ts';
import { ecBackend, encodeDerSignature } from '../../crypto/secp256k1.ts';
import { type ChainSigner, compressedKey, hash160, signDigestCompact } from '../chain-signer.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import {
  readXrplTransaction,
  serializeForSigning,
  serializeSigned,
  type XrplTransaction,
} from './transaction.ts';

/**
 * Signs for XRP Ledger accounts. The payload is the SHA-512Half digest, the signature r || s. Source: XRPL docs,
 * address encoding.
 */
export const xrplSigner: ChainSigner = {
  walletKeys(secret) {
    const key = compressedKey(secret);
    return { address: xrplAddress(key), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};

/** Returns base58xrp(0x00 || hash160(key) || sha256(sha256(body))[0..4]). */
export function xrplAddress(publicKey: Uint8Array): string {
  const body = concatBytes(Uint8Array.of(0x00), hash160(publicKey));
  return base58xrp.encode(concatBytes(body, sha256(sha256(body)).subarray(0, 4)));
}

export interface XrplTransactionParams {
  readonly transaction: string;
  readonly encoding: 'hex';
}

export interface XrplSignedTransaction {
  /** DER, upper-case hex. */
  readonly txn_signature: string;
  /** The transaction blob, ready to submit, in upper-case hex. */
  readonly signed_transaction: string;
}

/**
 * Executes `xrpl_signTransaction`: signs as the only signer, with the wallet's key as `SigningPubKey`. The account
 * must be the wallet, and the transaction must not contain a signature yet.
 *
 * @throws InvalidTransactionError
 */
export function signXrplTransaction(
  secret: Uint8Array,
  params: XrplTransactionParams,
): XrplSignedTransaction {
  const publicKey = compressedKey(secret);
  const read = readXrplTransaction(params.transaction);
  const signingKey = bytesToHex(publicKey).toUpperCase();
  assertSignable(read.transaction, xrplAddress(publicKey), signingKey);
  const key = { SigningPubKey: signingKey };
  // sha512(53545800 || fields)[0..32]
  const digest = sha512(hexToBytes(serializeForSigning(read, key))).subarray(0, 32);
  const signature = bytesToHex(encodeDerSignature(ecBackend.sign(digest, secret).compact)).toUpperCase();
  return {
    txn_signature: signature,
    signed_transaction: serializeSigned(read, { ...key, TxnSignature: signature }),
  };
}

function assertSignable(transaction: XrplTransaction, address: string, signingKey: string): void {
  const { Account: account, SigningPubKey: givenKey } = transaction;
  if (account !== address) {
    throw new InvalidTransactionError(
      '/transaction',
      `expected the wallet's account \`${address}\`, got \`${account}\``,
    );
  }
  if (givenKey !== undefined && givenKey !== '' && givenKey !== signingKey) {
    throw new InvalidTransactionError('/transaction', "expected no `SigningPubKey` or the wallet's key");
  }
  if (transaction.TxnSignature !== undefined || transaction.Signers !== undefined) {
    throw new InvalidTransactionError('/transaction', 'expected no `TxnSignature` and no `Signers`');
  }
}
