import { hash } from 'node:crypto';
import type { Entropy } from '../../../ports/entropy.ts';

// RFC 8628 section 6.1: consonants only, so that codes spell no words.
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const USER_CODE_LENGTH = 8;
const SECRET_BYTES = 32;

/** Eight letters, 34.5 bits. */
export function drawUserCode(entropy: Entropy): string {
  let code = '';
  while (code.length < USER_CODE_LENGTH) {
    for (const byte of entropy.bytes(USER_CODE_LENGTH)) {
      // The largest multiple of 20 in a byte, so that every letter is equally likely.
      if (byte < 240 && code.length < USER_CODE_LENGTH) code += LETTERS[byte % LETTERS.length];
    }
  }
  return code;
}

/** A code as people type it, in stored form: without case, hyphens and other signs (RFC 8628 section 6.1). */
export function normalizeUserCode(text: string): string {
  return text
    .slice(0, 64)
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, '');
}

/** `WDJBMJHT` -> `WDJB-MJHT`. */
export function showUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** 256 random bits in base64url. */
export function drawSecret(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(SECRET_BYTES)).toString('base64url');
}

/** The stored form of a secret: hex SHA-256. */
export function hashOfSecret(secret: string): string {
  return hash('sha256', secret);
}
