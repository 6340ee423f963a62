import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { recoverableBytes } from '../ethereum/ecdsa-signature.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { encodeTronRawData, type TronRawData } from './raw-data.ts';
import { tronAccount } from './signer.ts';

/**
 * `tron_signTransaction`: raw data || signature (r || s || v, v 27/28) as hex without 0x. The transaction id is
 * sha256(raw data). The contract's owner must be the wallet. Throws InvalidFieldError, InvalidTransactionError.
 */
export function signTronTransaction(secret: Uint8Array, params: { readonly raw_data: TronRawData }): string {
  const rawData = encodeTronRawData(params.raw_data);
  const owner = params.raw_data.contract[0]?.owner_address ?? '';
  const wallet = bytesToHex(tronAccount(secret));
  if (owner.toLowerCase() !== wallet) {
    throw new InvalidTransactionError(
      '/raw_data/contract/0/owner_address',
      `expected the wallet's address \`${wallet}\`, got \`${owner}\``,
    );
  }
  const signature = ecBackend.sign(sha256(rawData), secret);
  return bytesToHex(concatBytes(rawData, recoverableBytes(signature)));
}
