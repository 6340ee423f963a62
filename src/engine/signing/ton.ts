import { sha256 } from '@noble/hashes/sha2.js';
import { base64urlnopad } from '@scure/base';
import { ed25519PublicKey } from '../crypto/ed25519.ts';
import { concatBytes, crc16, hexToBytes } from '../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from './chain-signer.ts';

// Wallet contract V4R2: the representation hash and the depth of its code cell.
const CODE_HASH = hexToBytes('feb5ff6820e2ff0d9483e7e0d62c817d846789fb4ae580c878866d959dabd5c0');
const CODE_DEPTH = 7;
const WALLET_ID = hexToBytes('29a9a317'); // 698983191, the id of workchain 0
const NON_BOUNCEABLE = 0x51;
const WORKCHAIN = 0;

/**
 * Signs for TON V4R2 wallets on workchain 0. Addresses are in the non-bounceable friendly form. Source: TEP-2; TVM
 * whitepaper 3.1, cell representation.
 */
export const tonSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: friendlyAddress(walletAccount(key)), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/** Returns the 32-byte account: the hash of the wallet's state-init cell. */
export function walletAccount(publicKey: Uint8Array): Uint8Array {
  // data cell, 321 bits: seqno 0 (32) | wallet id (32) | key (256) | no plugins (1), then the completion bit
  const dataHash = sha256(
    concatBytes(
      Uint8Array.of(0x00, 0x51),
      new Uint8Array(4),
      WALLET_ID,
      publicKey,
      Uint8Array.of(0b0100_0000),
    ),
  );
  // state init, 5 bits 00110 then the completion bit: two references, depth and hash of code and data
  const head = Uint8Array.of(0x02, 0x01, 0x34, 0x00, CODE_DEPTH, 0x00, 0x00);
  return sha256(concatBytes(head, CODE_HASH, dataHash));
}

// Returns base64url(tag || workchain || account || crc16).
function friendlyAddress(account: Uint8Array): string {
  const body = concatBytes(Uint8Array.of(NON_BOUNCEABLE, WORKCHAIN), account);
  const checksum = crc16(body);
  return base64urlnopad.encode(concatBytes(body, Uint8Array.of(checksum >> 8, checksum & 0xff)));
}
