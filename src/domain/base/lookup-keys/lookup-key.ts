import { hash } from 'node:crypto';

// A PostgreSQL index entry can have about 2,700 bytes, which is enough for the app, the kind and one key.
const MAX_BYTES = 512;
const HASHED = 'sha256:';

/**
 * Returns the form of a string for an index. A digest replaces a string that is too long for an index or that a text
 * column cannot store (U+0000, a lone surrogate). Different strings have different keys.
 */
export function lookupKey(text: string): string {
  const fits =
    text.isWellFormed() &&
    !text.includes('\0') &&
    !text.startsWith(HASHED) &&
    Buffer.byteLength(text) <= MAX_BYTES;
  // `JSON.stringify` escapes lone surrogates. UTF-8 alone would encode all of them as the same replacement character.
  return fits ? text : HASHED + hash('sha256', JSON.stringify(text));
}
