import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { bytesToBase58 } from '../../crypto/encoding.ts';
import type { ChainRoom } from '../chain-room.ts';
import { ed25519KeyText, signMessageEd25519 } from '../room-parts.ts';

/** Solana accounts: the ed25519 key in base58. */
export const solanaRoom: ChainRoom = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToBase58(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};
