import { bytesToHex } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import type { ChainRoom } from '../chain-room.ts';
import { compressedKey, requireDigest } from '../room-parts.ts';
import { ethereumAddress } from './address.ts';
import { recoverableBytes } from './ecdsa-signature.ts';

/** EVM accounts with the EIP-55 case. */
export const ethereumRoom: ChainRoom = {
  walletKeys: (secret) => ({
    address: ethereumAddress(secret),
    publicKey: bytesToHex(compressedKey(secret)),
  }),
  // CHOICE: r || s || v as `secp256k1_sign` gives it.
  signPayload: (secret, payload) => recoverableBytes(ecBackend.sign(requireDigest(payload), secret)),
};
