import { sha3_256 } from '@noble/hashes/sha3.js';
import { ed25519PublicKey, ed25519Sign } from '../../crypto/ed25519.ts';
import { bytesTo0xHex, concatBytes, equalBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from '../chain-signer.ts';
import { parseHexBytes } from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { decodeAptosRawTransaction } from './raw-transaction.ts';

const SINGLE_ED25519 = Uint8Array.of(0x00);

/**
 * Aptos accounts. Movement uses the same address and transaction format. `raw_sign` takes the signing message (prefix
 * hash || BCS) instead of a digest. Source: AIP-40, single-signer authentication.
 */
export const aptosSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesTo0xHex(aptosAccount(key)), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/** The account of an ed25519 key that was never rotated: sha3-256(key || 0x00), 32 bytes. */
export function aptosAccount(publicKey: Uint8Array): Uint8Array {
  return sha3_256(concatBytes(publicKey, SINGLE_ED25519));
}

const SIGNING_PREFIX = sha3_256(utf8ToBytes('APTOS::RawTransaction'));

/**
 * `aptos_signTransaction`: returns the SignedTransaction as 0x hex, with the raw transaction unchanged. The sender
 * must be the wallet. Source: aptos-core, TransactionAuthenticator::Ed25519.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export function signAptosTransaction(
  secret: Uint8Array,
  params: { readonly transaction: string },
): `0x${string}` {
  const raw = parseHexBytes(params.transaction, '/transaction');
  const { sender } = decodeAptosRawTransaction(raw);
  const publicKey = ed25519PublicKey(secret);
  const account = aptosAccount(publicKey);
  if (!equalBytes(sender, account)) {
    throw new InvalidTransactionError(
      '/transaction',
      `expected the wallet \`${bytesTo0xHex(account)}\` as sender, got \`${bytesTo0xHex(sender)}\``,
    );
  }
  // sign(sha3-256("APTOS::RawTransaction") || raw); raw || 00 || 20 key || 40 signature
  const signature = ed25519Sign(concatBytes(SIGNING_PREFIX, raw), secret);
  return bytesTo0xHex(concatBytes(raw, Uint8Array.of(0x00, 0x20), publicKey, Uint8Array.of(0x40), signature));
}
