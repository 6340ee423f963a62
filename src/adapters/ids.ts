import type { Entropy } from '../ports/entropy.ts';
import type { Ids } from '../ports/ids.ts';

const letters = 'abcdefghijklmnopqrstuvwxyz';
const alphanumerics = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * `length` characters drawn evenly from `alphabet`.
 *
 * A byte at or above the largest multiple of the alphabet's length is thrown away, so that no character is
 * likelier than another.
 */
function drawCharacters(entropy: Entropy, alphabet: string, length: number): string {
  const limit = 256 - (256 % alphabet.length);
  let drawn = '';
  while (drawn.length < length) {
    for (const byte of entropy.bytes(length - drawn.length)) {
      if (byte < limit) drawn += alphabet[byte % alphabet.length];
    }
  }
  return drawn;
}

/** RFC 9562 §5.4: 122 random bits, version 4, variant 10. */
function uuidVersion4(entropy: Entropy): string {
  const bytes = Buffer.from(entropy.bytes(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Makers of identifiers; each id holds over 120 bits of `entropy`. */
export function makeIds(entropy: Entropy): Ids {
  const cuid = (): string => `c${drawCharacters(entropy, alphanumerics, 24)}`;
  return {
    cuid2: () => drawCharacters(entropy, letters, 1) + drawCharacters(entropy, alphanumerics, 23),
    cuid,
    userDid: () => `did:service:${cuid()}`,
    uuid: () => uuidVersion4(entropy),
  };
}
