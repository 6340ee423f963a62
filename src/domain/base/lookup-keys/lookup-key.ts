import { hash } from 'node:crypto';

// An index entry of PostgreSQL holds about 2700 bytes; app, kind and one of these fit well.
const MAX_BYTES = 512;
const HASHED = 'sha256:';

/**
 * The form in which a text is indexed: itself, or a digest when it is too long for an index or holds what a text
 * column cannot (U+0000, half a surrogate pair). Different texts have different keys.
 */
export function lookupKey(text: string): string {
  const fits =
    text.isWellFormed() &&
    !text.includes('\0') &&
    !text.startsWith(HASHED) &&
    Buffer.byteLength(text) <= MAX_BYTES;
  // JSON writes half a pair as an escape, which UTF-8 could not tell from another half.
  return fits ? text : HASHED + hash('sha256', JSON.stringify(text));
}
