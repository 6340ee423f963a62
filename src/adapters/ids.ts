import type { Entropy } from '../ports/entropy.ts';
import type { Ids } from '../ports/ids.ts';

const letters = 'abcdefghijklmnopqrstuvwxyz';
const alphanumerics = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * `length` uniformly distributed characters of `alphabet`. Discards bytes at or above the largest multiple of the
 * alphabet's length, which would favor some characters.
 */
function randomCharacters(entropy: Entropy, alphabet: string, length: number): string {
  const limit = 256 - (256 % alphabet.length);
  let characters = '';
  while (characters.length < length) {
    for (const byte of entropy.bytes(length - characters.length)) {
      if (byte < limit) characters += alphabet[byte % alphabet.length];
    }
  }
  return characters;
}

/** RFC 9562 §5.4: 122 random bits, version 4, variant 10. */
function uuidVersion4(entropy: Entropy): string {
  const bytes = Buffer.from(entropy.bytes(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Generates identifiers with more than 120 bits of entropy each. */
export function makeIds(entropy: Entropy): Ids {
  const cuid = (): string => `c${randomCharacters(entropy, alphanumerics, 24)}`;
  return {
    cuid2: () => randomCharacters(entropy, letters, 1) + randomCharacters(entropy, alphanumerics, 23),
    cuid,
    userDid: () => `did:service:${cuid()}`,
    uuid: () => uuidVersion4(entropy),
  };
}
