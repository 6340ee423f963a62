import { bech32 } from '@scure/base';
import { bytesToHex } from '../crypto/encoding.ts';
import { type ChainSigner, compressedKey, hash160, signDigestCompact } from './chain-signer.ts';

/**
 * Signs for Cosmos Hub accounts: bech32("cosmos", ripemd160(sha256(compressed key))). Source: Cosmos SDK ADR-028,
 * secp256k1 keys.
 */
export const cosmosSigner: ChainSigner = {
  walletKeys(secret) {
    const key = compressedKey(secret);
    return { address: bech32.encodeFromBytes('cosmos', hash160(key)), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};
