import type { Entropy } from '../ports/entropy.ts';

const ID_BYTES = 16;
const IDS_PER_DRAW = 256;

/**
 * Request ids: UUIDs of version 4 (RFC 9562 §5.4). Randomness is drawn for many at a time, because one system call
 * per id costs a tenth of a request.
 *
 * NOTE: needs its own entropy. With a shared seeded one, every request would change all later ids.
 */
export function requestIdsFrom(entropy: Entropy): () => string {
  let drawn = '';
  let offset = 0;
  return () => {
    if (offset === drawn.length) {
      drawn = Buffer.from(entropy.bytes(ID_BYTES * IDS_PER_DRAW)).toString('hex');
      offset = 0;
    }
    const hex = drawn.slice(offset, offset + 2 * ID_BYTES);
    offset += 2 * ID_BYTES;
    // The two highest bits of the 17th digit are the variant, 10.
    const variant = '89ab'[Number.parseInt(hex[16]!, 16) & 3];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
}
