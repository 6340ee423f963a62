import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';

/**
 * Computes where Solidity stores variables. Slots and words are 64 hex digits. Source: Solidity documentation,
 * "Layout of State Variables in Storage".
 */

export function wordOf(value: bigint | number | boolean): string {
  return BigInt(value).toString(16).padStart(64, '0');
}

/** Pads an address (0x hex) to a word. */
export function addressWord(address: string): string {
  return address.slice(2).padStart(64, '0');
}

export function addressIn(word: string): string {
  return `0x${word.slice(24)}`;
}

export function numberIn(word: string): bigint {
  return BigInt(`0x${word}`);
}

/** Returns the slot of a mapping's entry: keccak256(key || slot). */
export function memberSlot(slot: string, keyWord: string): string {
  return bytesToHex(keccak_256(hexToBytes(keyWord + slot)));
}

/** Returns the slot of a dynamic array's element: keccak256(slot) + index. */
export function elementSlot(slot: string, index: number): string {
  return wordOf(numberIn(bytesToHex(keccak_256(hexToBytes(slot)))) + BigInt(index));
}

export function stringWords(slot: string, text: string): [slot: string, word: string][] {
  const bytes = bytesToHex(utf8ToBytes(text));
  const length = bytes.length / 2;
  // A short string is stored in its slot together with twice its length.
  if (length < 32) return [[slot, bytes.padEnd(62, '0') + (length * 2).toString(16).padStart(2, '0')]];
  const parts = bytes.match(/.{1,64}/g) ?? [];
  return [
    [slot, wordOf(length * 2 + 1)],
    ...parts.map((part, index): [string, string] => [elementSlot(slot, index), part.padEnd(64, '0')]),
  ];
}
