import { bytesToHex } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { type ChainSigner, compressedKey, requireDigest } from '../chain-signer.ts';
import { ethereumAddress, recoverableBytes } from './signature.ts';

/** EVM accounts with EIP-55 checksum addresses. */
export const ethereumSigner: ChainSigner = {
  walletKeys: (secret) => ({
    address: ethereumAddress(secret),
    publicKey: bytesToHex(compressedKey(secret)),
  }),
  // CHOICE: r || s || v, the format of `secp256k1_sign`.
  signPayload: (secret, payload) => recoverableBytes(ecBackend.sign(requireDigest(payload), secret)),
};
