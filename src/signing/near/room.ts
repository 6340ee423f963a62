import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { bytesToHex } from '../../crypto/encoding.ts';
import type { ChainRoom } from '../chain-room.ts';
import { ed25519KeyText, signMessageEd25519 } from '../room-parts.ts';

/** NEAR implicit accounts: the key as 64 lower-case hex digits. Source: NEP-071, implicit accounts. */
export const nearRoom: ChainRoom = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToHex(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};
