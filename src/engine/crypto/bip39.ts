import { hash, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import * as bip39 from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';

const pbkdf2Async = promisify(pbkdf2);

/** Thrown when a phrase is not 12 to 24 English words with a valid checksum. The message never contains the phrase. */
export class InvalidMnemonicError extends Error {
  constructor() {
    super('expected a BIP-39 phrase of 12, 15, 18, 21 or 24 English words with a valid checksum');
    this.name = 'InvalidMnemonicError';
  }
}

const BITS_OF_WORD = 11;

/**
 * Encodes 16, 20, 24, 28 or 32 bytes of entropy as an English phrase, with one space between words (BIP-39).
 *
 * NOTE: this does not call the library, which checks its whole word list at each call. That takes longer than a
 * signature.
 */
export function entropyToMnemonic(entropy: Uint8Array): string {
  if (![16, 20, 24, 28, 32].includes(entropy.length)) {
    throw new RangeError(`expected 16, 20, 24, 28 or 32 bytes of entropy, got ${entropy.length}`);
  }
  // entropy || SHA-256(entropy), of which only one bit per 32 bits of entropy is used. The two extra bytes are
  // padding, so that an 11-bit window at the end can be read.
  const bytes = new Uint8Array(entropy.length + 3);
  bytes.set(entropy);
  bytes.set(hash('sha256', entropy, 'buffer').subarray(0, 1), entropy.length);
  const count = (entropy.length * 8 + entropy.length / 4) / BITS_OF_WORD;
  const words = Array.from({ length: count }, (_, place) => {
    const bit = place * BITS_OF_WORD;
    const at = bit >> 3;
    const window = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    return wordlist[(window >> (24 - BITS_OF_WORD - (bit & 7))) & 0x7ff]!;
  });
  bytes.fill(0);
  return words.join(' ');
}

/**
 * Decodes an English phrase. White space is normalized.
 *
 * @throws InvalidMnemonicError
 */
export function mnemonicToEntropy(mnemonic: string): Uint8Array {
  try {
    return bip39.mnemonicToEntropy(normalize(mnemonic), wordlist);
  } catch {
    throw new InvalidMnemonicError();
  }
}

/**
 * Derives the 64-byte seed of a phrase: PBKDF2-HMAC-SHA512, 2048 rounds, salt "mnemonic" || passphrase (BIP-39). Runs
 * off the event loop.
 *
 * @throws InvalidMnemonicError
 */
export async function mnemonicToSeed(mnemonic: string, passphrase = ''): Promise<Uint8Array> {
  const words = normalize(mnemonic);
  mnemonicToEntropy(words).fill(0);
  return stretch(words, passphrase);
}

/** Derives the BIP-39 seed for `entropy`, without a passphrase and without checking a checksum. */
export function entropyToSeed(entropy: Uint8Array): Promise<Uint8Array> {
  return stretch(entropyToMnemonic(entropy), '');
}

async function stretch(words: string, passphrase: string): Promise<Uint8Array> {
  const password = Buffer.from(words, 'utf8');
  try {
    const salt = Buffer.from(`mnemonic${passphrase.normalize('NFKD')}`, 'utf8');
    return new Uint8Array(await pbkdf2Async(password, salt, 2048, 64, 'sha512'));
  } finally {
    password.fill(0);
  }
}

function normalize(mnemonic: string): string {
  return mnemonic.normalize('NFKD').trim().split(/\s+/u).join(' ');
}
