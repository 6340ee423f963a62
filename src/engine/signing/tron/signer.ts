import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import { bytesToHex, concatBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { type ChainSigner, compressedKey, signDigestCompact } from '../chain-signer.ts';
import { evmAccount, recoverableBytes } from '../ethereum/signer.ts';
import { encodeTronRawData, type TronRawData } from './raw-data.ts';

const MAINNET = Uint8Array.of(0x41);
const base58check = createBase58check(sha256);

/**
 * Signs for TRON accounts, whose address is base58check(0x41 || keccak256(X || Y)[12..32]). Source: TRON protocol,
 * account model.
 */
export const tronSigner: ChainSigner = {
  walletKeys(secret) {
    return {
      address: base58check.encode(tronAccount(secret)),
      publicKey: bytesToHex(compressedKey(secret)),
    };
  },
  // NOTE: returns 64 bytes, r || s, as published clients verify it. TRON transactions append the recovery byte.
  signPayload: signDigestCompact,
};

/** Returns 0x41 || account, the 21-byte address in the wire format. */
export function tronAccount(secret: Uint8Array): Uint8Array {
  return concatBytes(MAINNET, evmAccount(secret));
}

/** Returns the `T…` notation of a 21-byte address. */
export function tronAddressText(account: Uint8Array): string {
  return base58check.encode(account);
}

/**
 * Executes `tron_signTransaction`: returns raw data || signature (r || s || v, v 27/28) as hex without 0x. The
 * transaction id is sha256(raw data).
 *
 * CHOICE: the contract's owner may be a different account that has granted the wallet's key a permission. Nodes check
 * this.
 *
 * @throws InvalidFieldError, InvalidTransactionError
 */
export function signTronTransaction(secret: Uint8Array, params: { readonly raw_data: TronRawData }): string {
  const rawData = encodeTronRawData(params.raw_data);
  const signature = ecBackend.sign(sha256(rawData), secret);
  return bytesToHex(concatBytes(rawData, recoverableBytes(signature)));
}
