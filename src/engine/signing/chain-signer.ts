import { ripemd160 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { ed25519Sign } from '../crypto/ed25519.ts';
import { bytesToHex } from '../crypto/encoding.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import { InvalidPayloadError } from './signing-errors.ts';

export type CurveType = 'secp256k1' | 'ed25519' | 'starknet';

/** The address and the public key that belong to a wallet's private key. */
export interface WalletKeys {
  readonly address: string;
  /**
   * The public key in hex or felt notation:
   * - secp256k1: compressed, 66 hex digits without 0x.
   * - ed25519: 00 followed by the key, 66 hex digits.
   * - starknet: the x coordinate as a 0x felt without leading zeros.
   */
  readonly publicKey: string;
}

/** Options for deriving addresses. They are configured per deployment, not per wallet. */
export interface AddressOptions {
  /** The account contract for which Starknet addresses are computed. Default: `ready`. */
  readonly starknetAccountClass?: 'ready' | 'openzeppelin' | undefined;
  /** Default: `mainnet`. */
  readonly sparkNetwork?: 'mainnet' | 'regtest' | undefined;
}

/** Derives a wallet's address and signs payloads for one chain. Secrets are 32 bytes and never stored. */
export interface ChainSigner {
  walletKeys(secret: Uint8Array, options: AddressOptions): WalletKeys;
  /**
   * Executes `raw_sign`: returns the signature over the payload in the chain's format.
   *
   * @throws InvalidPayloadError if the chain does not sign payloads of this length.
   */
  signPayload(secret: Uint8Array, payload: Uint8Array): Uint8Array;
}

/** Returns ripemd160(sha256(bytes)), 20 bytes. */
export function hash160(bytes: Uint8Array): Uint8Array {
  return ripemd160(sha256(bytes));
}

/** Returns the compressed secp256k1 public key, 33 bytes. */
export function compressedKey(secret: Uint8Array): Uint8Array {
  return ecBackend.publicKey(secret, true);
}

/** Returns an ed25519 public key in SLIP-10 format: 00 followed by the key, 66 hex digits. */
export function ed25519KeyText(publicKey: Uint8Array): string {
  return `00${bytesToHex(publicKey)}`;
}

/** Signs a payload that must be a 32-byte digest. Returns r || s, 64 bytes with low s. */
export function signDigestCompact(secret: Uint8Array, payload: Uint8Array): Uint8Array {
  return ecBackend.sign(requireDigest(payload), secret).compact;
}

/** Signs the payload with ed25519 and returns 64 bytes. The payload is the message itself, not a digest. */
export function signMessageEd25519(secret: Uint8Array, payload: Uint8Array): Uint8Array {
  if (payload.length === 0) throw new InvalidPayloadError('/hash', 'expected at least one byte to sign');
  return ed25519Sign(payload, secret);
}

/**
 * Returns the payload if it is 32 bytes long.
 *
 * @throws InvalidPayloadError
 */
export function requireDigest(payload: Uint8Array): Uint8Array {
  if (payload.length !== 32) {
    throw new InvalidPayloadError('/hash', `expected a digest of 32 bytes, got ${payload.length}`);
  }
  return payload;
}
