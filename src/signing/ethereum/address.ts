import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, utf8ToBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';

/** The EIP-55 address of a 32-byte secret. */
export function ethereumAddress(secret: Uint8Array): string {
  return checksumAddress(bytesToHex(evmAccount(secret)));
}

/** The 20-byte account of a secret: keccak256(X || Y)[12..32]. TRON shares it. */
export function evmAccount(secret: Uint8Array): Uint8Array {
  const publicKey = ecBackend.publicKey(secret, false);
  return keccak_256(publicKey.subarray(1)).subarray(12);
}

/** 40 hex digits without 0x to an address with the EIP-55 case. */
export function checksumAddress(accountHex: string): string {
  const lower = accountHex.toLowerCase();
  const hash = bytesToHex(keccak_256(utf8ToBytes(lower)));
  let address = '0x';
  for (let index = 0; index < 40; index += 1) {
    const digit = lower.charAt(index);
    // upper case where the same digit of keccak256(lower case text) is 8 or more
    address += hash.charAt(index) >= '8' ? digit.toUpperCase() : digit;
  }
  return address;
}
