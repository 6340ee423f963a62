import { bytesToHex } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import type { ChainSigner } from '../chain-signer.ts';
import { compressedKey, requireDigest } from '../signer-parts.ts';
import { ethereumAddress } from './address.ts';
import { recoverableBytes } from './ecdsa-signature.ts';

/** EVM accounts with EIP-55 checksum addresses. */
export const ethereumSigner: ChainSigner = {
  walletKeys: (secret) => ({
    address: ethereumAddress(secret),
    publicKey: bytesToHex(compressedKey(secret)),
  }),
  // CHOICE: r || s || v, the format of `secp256k1_sign`.
  signPayload: (secret, payload) => recoverableBytes(ecBackend.sign(requireDigest(payload), secret)),
};
