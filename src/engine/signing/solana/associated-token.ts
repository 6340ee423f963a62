import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { base58ToBytes, bytesToBase58, concatBytes, utf8ToBytes } from '../../crypto/encoding.ts';

export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
export const ASSOCIATED_TOKEN_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';

/**
 * Derives the associated token account of an owner and a mint, in base58: sha256(owner || token program || mint ||
 * bump || associated token program || "ProgramDerivedAddress"), with the highest bump whose hash is not a point on
 * the curve. Source: Solana docs, program derived addresses.
 */
export function associatedTokenAddress(owner: string, mint: string, tokenProgram = TOKEN_PROGRAM): string {
  const seeds = [owner, tokenProgram, mint].map(base58ToBytes);
  const program = base58ToBytes(ASSOCIATED_TOKEN_PROGRAM);
  for (let bump = 255; bump >= 0; bump -= 1) {
    const derived = sha256(
      concatBytes(...seeds, Uint8Array.of(bump), program, utf8ToBytes('ProgramDerivedAddress')),
    );
    if (!isOnCurve(derived)) return bytesToBase58(derived);
  }
  // Reached with a probability of 2^-256.
  throw new Error('expected a bump whose hash is off the curve');
}

function isOnCurve(bytes: Uint8Array): boolean {
  try {
    ed25519.Point.fromBytes(bytes);
    return true;
  } catch {
    return false;
  }
}
