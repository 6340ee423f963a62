import { readFileSync } from 'node:fs';
import { StartError } from '../../config/start-error.ts';
import { type Checkpoint, type NoteVerifier, openCheckpoint } from '../../engine/crypto/tlog/checkpoint.ts';
import { leafHash, rootOf, rootOfHashes, rootOfInclusion } from '../../engine/crypto/tlog/merkle-tree.ts';
import { readProof } from '../../engine/crypto/tlog/proof.ts';
import { hashesOf, readBundle, subtreesOf, TILE_WIDTH } from '../../engine/crypto/tlog/tiles.ts';
import { files, readFileOf, readTileOf, verifierFor, widthOf } from './log-folder.ts';

interface Verification {
  /** The number of records in the log according to its checkpoint; undefined if the checkpoint is invalid. */
  readonly size: number | undefined;
  /** The root hash in base64. */
  readonly root: string | undefined;
  /** The faults of the log. Empty for an intact log. */
  readonly faults: readonly string[];
}

/** The maximum number of listed faults. */
const MAX_FAULTS = 100;

/**
 * Verifies an exported log: every record against its hash, the hashes against the tree, and the tree against the signed
 * checkpoint. If an earlier checkpoint of a witness is given, verifies that the log continues it.
 *
 * HOT: it reads every record.
 *
 * @throws StartError when the folder is not a log.
 */
export async function verifyLog(
  folder: string,
  { key, witnessed }: { readonly key?: string | undefined; readonly witnessed?: string | undefined } = {},
): Promise<Verification> {
  const verifier = verifierFor(folder, key);
  const note = readFileOf(folder, files.checkpoint)?.toString('utf8');
  if (note === undefined) throw new StartError(`\`${folder}\` has no checkpoint`);
  const checkpoint = openCheckpoint(note, verifier);
  if (checkpoint === undefined) {
    return {
      size: undefined,
      root: undefined,
      faults: ['the checkpoint has no valid signature by the key of the log'],
    };
  }
  const faults: string[] = [];
  const tree = hashRecords(folder, checkpoint.size, faults);
  // The tiles of the lowest level are read again, because the hashes of all records would not fit into memory. If a
  // tile does not match its records, `faults` contains it already.
  const readTile = async (level: number, index: number): Promise<Uint8Array> =>
    level === 0
      ? (readTileOf(folder, checkpoint.size, { level, index }) ?? Buffer.alloc(0))
      : Buffer.concat(tree[level]?.slice(index * TILE_WIDTH, (index + 1) * TILE_WIDTH) ?? []);
  const rootAt = async (size: number): Promise<Buffer> =>
    Buffer.from(await rootOf(subtreesOf(readTile), size));
  if (faults.length === 0 && !(await rootAt(checkpoint.size)).equals(checkpoint.root)) {
    faults.push('the records do not have the root of the checkpoint');
  }
  if (witnessed !== undefined) {
    const fault = await compareWithWitness(openCheckpoint(witnessed, verifier), checkpoint, rootAt);
    if (fault !== undefined) faults.push(fault);
  }
  const { size, root } = checkpoint;
  return { size, root: Buffer.from(root).toString('base64'), faults: faults.slice(0, MAX_FAULTS) };
}

/**
 * Computes the hashes at each level of the tree from the records, and compares them with the stored tiles. Returns
 * the hashes of all levels except the lowest, which are only compared.
 */
function hashRecords(folder: string, size: number, faults: string[]): Uint8Array[][] {
  const roots: Uint8Array[] = [];
  for (let index = 0; index * TILE_WIDTH < size; index += 1) {
    const bundle = readTileOf(folder, size, { level: 'entries', index });
    const tile = readTileOf(folder, size, { level: 0, index });
    const entries = bundle === undefined ? undefined : readBundle(bundle);
    const width = widthOf(0, index, size);
    const first = index * TILE_WIDTH;
    const range = `records ${first} to ${first + width - 1}`;
    if (entries === undefined || tile === undefined) {
      faults.push(
        `${range}: the file is ${bundle === undefined || tile === undefined ? 'missing' : 'damaged'}`,
      );
      continue;
    }
    if (entries.length !== width) faults.push(`${range}: expected ${width} records, got ${entries.length}`);
    const hashes = entries.map(leafHash);
    const stored = hashesOf(tile);
    for (let at = 0; at < width; at += 1) {
      const [computed, expected] = [hashes[at], stored[at]];
      if (computed === undefined || expected === undefined || computed.equals(expected)) continue;
      faults.push(`record ${first + at}: it is not the one that was logged`);
    }
    if (tile.length !== width * 32) faults.push(`${range}: expected a tile of ${width} hashes`);
    if (faults.length >= MAX_FAULTS) break;
    if (faults.length === 0 && width === TILE_WIDTH) roots.push(rootOfHashes(hashes));
  }
  const tree = [[], roots];
  if (faults.length === 0) addLevels(folder, { size, tree, faults });
  return tree;
}

interface Growing {
  readonly size: number;
  readonly tree: Uint8Array[][];
  readonly faults: string[];
}

function addLevels(folder: string, { size, tree, faults }: Growing): void {
  for (let level = 1; tree[level]!.length > 0; level += 1) {
    const hashes = tree[level]!;
    const roots: Uint8Array[] = [];
    for (let index = 0; index * TILE_WIDTH < hashes.length; index += 1) {
      const tile = hashes.slice(index * TILE_WIDTH, (index + 1) * TILE_WIDTH);
      const stored = readTileOf(folder, size, { level, index });
      if (stored === undefined || !Buffer.concat(tile).equals(stored)) {
        faults.push(`tile ${level}/${index}: its hashes are not those of the records`);
      }
      if (tile.length === TILE_WIDTH) roots.push(rootOfHashes(tile));
    }
    tree.push(roots);
  }
}

async function compareWithWitness(
  witnessed: Checkpoint | undefined,
  { size }: Checkpoint,
  rootAt: (size: number) => Promise<Buffer>,
): Promise<string | undefined> {
  if (witnessed === undefined) return "the witness's checkpoint has no valid signature by the key of the log";
  if (witnessed.size > size)
    return `a witness has seen ${witnessed.size} records, the log has ${size}: it was truncated`;
  const root = await rootAt(witnessed.size).catch(() => undefined);
  if (root?.equals(witnessed.root)) return undefined;
  return `the first ${witnessed.size} records are not those that a witness has seen`;
}

/** Checks the proof that a record is in a log, without the log. Returns the fault of the proof, if any. */
export function verifyProof(
  verifier: NoteVerifier,
  { proofFile, recordFile }: { readonly proofFile: string; readonly recordFile: string },
): string | undefined {
  const proof = readProof(readFileSync(proofFile, 'utf8'));
  if (proof === undefined) return 'expected a proof in the format `c2sp.org/tlog-proof@v1`';
  const checkpoint = openCheckpoint(proof.checkpoint, verifier);
  if (checkpoint === undefined) return 'its checkpoint has no valid signature by the key of the log';
  // Editors end files with a line break, which records do not contain.
  const record = readFileSync(recordFile, 'utf8').replace(/\r?\n$/, '');
  const leaf = leafHash(Buffer.from(record));
  const root = rootOfInclusion({ leaf, index: proof.index, size: checkpoint.size }, proof.hashes);
  if (root !== undefined && Buffer.compare(root, checkpoint.root) === 0) return undefined;
  return 'the record is not the one that was logged';
}
