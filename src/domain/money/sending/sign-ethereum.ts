import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes } from '../../../crypto/encoding.ts';
import type { EthereumTransaction } from '../../../signing/ethereum/sign-transaction.ts';
import type { SignedBytes, SigningKey } from './built-transaction.ts';

/** The signed bytes of a complete transaction, and their hash. Throws SigningInputError. */
export async function signEthereum(key: SigningKey, transaction: EthereumTransaction): Promise<SignedBytes> {
  const { signed_transaction: signed } = await key.sign('eth_signTransaction', { transaction });
  const bytes = hexToBytes(signed.slice(2));
  return { bytes, hash: bytesTo0xHex(keccak_256(bytes)) };
}
