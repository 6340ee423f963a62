import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../config/start-error.ts';
import { type NoteVerifier, readVerifierKey } from '../../engine/crypto/tlog/checkpoint.ts';
import {
  HASH_BYTES,
  type ReadTile,
  readBundle,
  TILE_WIDTH,
  tilePath,
  tilesAt,
  writeBundle,
} from '../../engine/crypto/tlog/tiles.ts';

/** The files of a log besides its tiles and bundles. `log.vkey` contains the key that verifies the checkpoints. */
export const files = { checkpoint: 'checkpoint', verifier: 'log.vkey' } as const;

/** Reads a file of the folder. Undefined if it does not exist. */
export function readFileOf(folder: string, name: string): Buffer | undefined {
  const path = join(folder, name);
  return existsSync(path) ? readFileSync(path) : undefined;
}

/** Returns how many hashes a tile has in a log of `size` records. 0 if the log has no such tile. */
export function widthOf(level: number, index: number, size: number): number {
  const { full, partial } = tilesAt(level, size);
  if (index < full) return TILE_WIDTH;
  return index === full ? partial : 0;
}

/**
 * Reads a tile or bundle of a log of `size` records. If only the full tile exists where this size needs a partial one,
 * returns its beginning. Undefined if the tile does not exist.
 */
export function readTileOf(
  folder: string,
  size: number,
  { level, index }: { readonly level: number | 'entries'; readonly index: number },
): Buffer | undefined {
  const width = widthOf(level === 'entries' ? 0 : level, index, size);
  if (width === 0) return undefined;
  const exact = readFileOf(folder, tilePath(level, index, width));
  const full = exact ?? readFileOf(folder, tilePath(level, index, TILE_WIDTH));
  if (exact !== undefined || full === undefined) return exact;
  if (level !== 'entries') return full.subarray(0, width * HASH_BYTES);
  const entries = readBundle(full);
  return entries === undefined ? full : writeBundle(entries.slice(0, width));
}

/** Returns a function that reads the tiles of a log of `size` records. A missing tile reads as empty. */
export function tilesIn(folder: string, size: number): ReadTile {
  return async (level, index) => readTileOf(folder, size, { level, index }) ?? Buffer.alloc(0);
}

/**
 * Returns the given verifier key, or the key in the folder.
 *
 * @throws StartError if there is no key, or its text is invalid.
 */
export function verifierFor(folder: string, given: string | undefined): NoteVerifier {
  const text = given ?? readFileOf(folder, files.verifier)?.toString('utf8').trim();
  if (text === undefined)
    throw new StartError(`\`${folder}\` has no \`${files.verifier}\`: give the key with --key`);
  const verifier = readVerifierKey(text);
  if (verifier === undefined)
    throw new StartError(`expected a verifier key \`name+id+key\`, got \`${text}\``);
  return verifier;
}
