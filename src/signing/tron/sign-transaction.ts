import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { recoverableBytes } from '../ethereum/ecdsa-signature.ts';
import { encodeTronRawData, type TronRawData } from './raw-data.ts';

/**
 * `tron_signTransaction`: raw data || signature (r || s || v, v 27/28) as hex without 0x. The transaction id is
 * sha256(raw data). Throws InvalidFieldError, InvalidTransactionError.
 *
 * CHOICE: the contract's owner may be another account than the wallet, which has given the wallet's key a permission.
 * Nodes check it.
 */
export function signTronTransaction(secret: Uint8Array, params: { readonly raw_data: TronRawData }): string {
  const rawData = encodeTronRawData(params.raw_data);
  const signature = ecBackend.sign(sha256(rawData), secret);
  return bytesToHex(concatBytes(rawData, recoverableBytes(signature)));
}
