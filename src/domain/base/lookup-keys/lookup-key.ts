import { hash } from 'node:crypto';

// A PostgreSQL index entry holds about 2,700 bytes: enough for app, kind and one key.
const MAX_BYTES = 512;
const HASHED = 'sha256:';

/**
 * The indexed form of a text: the text itself, or a digest when it is too long for an index or contains what a text
 * column cannot store (U+0000, a lone surrogate). Different texts have different keys.
 */
export function lookupKey(text: string): string {
  const fits =
    text.isWellFormed() &&
    !text.includes('\0') &&
    !text.startsWith(HASHED) &&
    Buffer.byteLength(text) <= MAX_BYTES;
  // JSON escapes lone surrogates, which UTF-8 would all encode as the same replacement character.
  return fits ? text : HASHED + hash('sha256', JSON.stringify(text));
}
