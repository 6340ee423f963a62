import { base32nopad } from '@scure/base';
import { ed25519PublicKey } from '../crypto/ed25519.ts';
import { concatBytes, crc16 } from '../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from './chain-signer.ts';

const ACCOUNT = 6 << 3; // "G"

/** Signs for Stellar accounts, whose address is a strkey. Source: SEP-23. */
export const stellarSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: strkey(ACCOUNT, key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

// Returns base32(version || 32 bytes || crc16-xmodem, low byte first).
function strkey(version: number, bytes: Uint8Array): string {
  const body = concatBytes(Uint8Array.of(version), bytes);
  const checksum = crc16(body);
  return base32nopad.encode(concatBytes(body, Uint8Array.of(checksum & 0xff, checksum >> 8)));
}
