import { type ReadSubtree, rootOfHashes } from './merkle-tree.ts';

// Source: C2SP tlog-tiles.

/** The number of hashes in a full tile, and of entries in a full bundle. */
export const TILE_WIDTH = 256;
const HEIGHT = 8;
export const HASH_BYTES = 32;

/** The maximum size of an entry in a bundle, because its length is a 16-bit number. */
export const MAX_ENTRY_BYTES = 65_535;

/**
 * Reads the hashes of a tile, concatenated. At level 0 they are hashes of entries; above, each is the hash of a full
 * tile of the level below.
 */
export type ReadTile = (level: number, index: number) => Promise<Uint8Array>;

/**
 * Returns a function that reads the hashes of subtrees from tiles. Level L of the tiles has the subtrees with 256^L
 * leaves.
 */
export function subtreesOf(readTile: ReadTile): ReadSubtree {
  return async (height, index) => {
    const level = Math.floor(height / HEIGHT);
    const width = 2 ** (height % HEIGHT);
    const first = index * width;
    const tile = await readTile(level, Math.floor(first / TILE_WIDTH));
    const hashes = hashesOf(tile).slice(first % TILE_WIDTH, (first % TILE_WIDTH) + width);
    if (hashes.length !== width) throw new MissingHashesError(level, Math.floor(first / TILE_WIDTH));
    return rootOfHashes(hashes);
  };
}

/** Thrown when a tile has fewer hashes than the size of its tree requires. */
export class MissingHashesError extends Error {
  constructor(level: number, index: number) {
    super(`tile ${level}/${index} has fewer hashes than the tree needs`);
    this.name = 'MissingHashesError';
  }
}

/** Splits a tile into its hashes. They are views, not copies. */
export function hashesOf(tile: Uint8Array): Uint8Array[] {
  const hashes: Uint8Array[] = [];
  for (let at = 0; at + HASH_BYTES <= tile.length; at += HASH_BYTES) {
    hashes.push(tile.subarray(at, at + HASH_BYTES));
  }
  return hashes;
}

/** A tile and the hashes that are appended to it. */
export interface ExtendedTile {
  readonly level: number;
  readonly index: number;
  readonly hashes: Uint8Array;
}

/**
 * Returns the tiles that change when leaves are appended to a tree of `size`, each with the hashes to append.
 *
 * @param readTile is called for partial tiles only.
 */
export async function appendToTiles(
  readTile: ReadTile,
  size: number,
  leaves: readonly Uint8Array[],
): Promise<ExtendedTile[]> {
  const changed: ExtendedTile[] = [];
  let [level, begin, added] = [0, size, leaves];
  while (added.length > 0) {
    const full: Uint8Array[] = [];
    let at = 0;
    while (at < added.length) {
      const index = Math.floor((begin + at) / TILE_WIDTH);
      const held = (begin + at) % TILE_WIDTH;
      const present = held === 0 ? [] : hashesOf(await readTile(level, index)).slice(0, held);
      if (present.length !== held) throw new MissingHashesError(level, index);
      const hashes = [...present, ...added.slice(at, at + TILE_WIDTH - held)];
      at += hashes.length - held;
      changed.push({ level, index, hashes: Buffer.concat(hashes) });
      if (hashes.length === TILE_WIDTH) full.push(rootOfHashes(hashes));
    }
    [level, begin, added] = [level + 1, Math.floor(begin / TILE_WIDTH), full];
  }
  return changed;
}

/**
 * Counts the tiles at one level of a tree: the number of full tiles, and the width of the partial tile, or 0 if there
 * is none.
 */
export function tilesAt(level: number, size: number): { readonly full: number; readonly partial: number } {
  const hashes = Math.floor(size / TILE_WIDTH ** level);
  return { full: Math.floor(hashes / TILE_WIDTH), partial: hashes % TILE_WIDTH };
}

/**
 * Returns the path of a tile, or that of a bundle if the level is `entries`. `width`: 256 for a full tile or bundle.
 */
export function tilePath(level: number | 'entries', index: number, width: number): string {
  const digits = String(index);
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0');
  const groups = padded.match(/\d{3}/g)!;
  const name = groups.map((group, at) => (at === groups.length - 1 ? group : `x${group}`)).join('/');
  return `tile/${level}/${name}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** Writes uint16 length || entry for each entry. */
export function writeBundle(entries: readonly Uint8Array[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    if (entry.length > MAX_ENTRY_BYTES) throw new RangeError(`an entry has ${entry.length} bytes`);
    parts.push(Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry);
  }
  return Buffer.concat(parts);
}

/** Reads the entries of a bundle. Returns undefined if the bundle ends within an entry. */
export function readBundle(bundle: Uint8Array): Uint8Array[] | undefined {
  const entries: Uint8Array[] = [];
  let at = 0;
  while (at < bundle.length) {
    if (at + 2 > bundle.length) return undefined;
    const end = at + 2 + bundle[at]! * 256 + bundle[at + 1]!;
    if (end > bundle.length) return undefined;
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  return entries;
}
