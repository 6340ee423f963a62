import { keccak_256 } from '@noble/hashes/sha3.js';
import * as Rlp from 'ox/Rlp';
import { bytesTo0xHex, hexToBytes } from '../../crypto/encoding.ts';

/** The address of a contract created by a transaction: keccak256(rlp([sender, nonce]))[12..32], 0x hex. */
export function contractAddress(sender: string, nonce: number): string {
  const digits = nonce.toString(16);
  const nonceHex = nonce === 0 ? '' : digits.padStart(digits.length + (digits.length % 2), '0');
  const encoded = Rlp.fromHex([sender.toLowerCase() as `0x${string}`, `0x${nonceHex}`]);
  return bytesTo0xHex(keccak_256(hexToBytes(encoded.slice(2))).subarray(12));
}
