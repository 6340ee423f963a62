import { hash } from 'node:crypto';

const HASH_BYTES = 32;
const LEAF = Uint8Array.of(0);

/** Returns SHA-256(0x00 || entry). RFC 6962 section 2.1. */
export function leafHash(entry: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([LEAF, entry]), 'buffer');
}

/** Returns SHA-256(0x01 || left || right). RFC 6962 section 2.1. */
function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  const node = Buffer.allocUnsafe(1 + 2 * HASH_BYTES);
  node[0] = 1;
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return hash('sha256', node, 'buffer');
}

/** The root of the tree without entries: the hash of the empty string. */
const emptyRoot: Buffer = hash('sha256', '', 'buffer');

/** Reads the hash of a complete subtree: the one with 2^level leaves that begins at leaf index * 2^level. */
export type ReadSubtree = (level: number, index: number) => Promise<Uint8Array>;

/** Consecutive leaves: `begin` inclusive, `end` exclusive. */
interface Range {
  readonly begin: number;
  readonly end: number;
}

/** Returns MTH(D[0:size]), the root of the tree of the first `size` leaves. RFC 6962 section 2.1. */
export function rootOf(read: ReadSubtree, size: number): Promise<Uint8Array> {
  return rangeHash(read, { begin: 0, end: size });
}

/**
 * Returns MTH(D[begin:end]). RFC 6962 section 2.1. The range must be one of those into which the RFC splits the tree.
 */
async function rangeHash(read: ReadSubtree, { begin, end }: Range): Promise<Uint8Array> {
  const count = end - begin;
  if (count === 0) return emptyRoot;
  if (isPowerOfTwo(count)) return read(Math.log2(count), begin / count);
  const middle = begin + splitOf(count);
  const left = await rangeHash(read, { begin, end: middle });
  return nodeHash(left, await rangeHash(read, { begin: middle, end }));
}

/**
 * Returns PATH(index, D[0:size]): the hashes that lead from a leaf to the root, the leaf's sibling first. RFC 6962
 * section 2.1.1.
 */
export async function inclusionProof(read: ReadSubtree, index: number, size: number): Promise<Uint8Array[]> {
  if (index < 0 || index >= size) throw new RangeError(`expected an index below ${size}, got ${index}`);
  const proof: Uint8Array[] = [];
  let range = { begin: 0, end: size };
  while (range.end - range.begin > 1) {
    const middle = range.begin + splitOf(range.end - range.begin);
    const [left, right] = [
      { begin: range.begin, end: middle },
      { begin: middle, end: range.end },
    ];
    proof.unshift(await rangeHash(read, index < middle ? right : left));
    range = index < middle ? left : right;
  }
  return proof;
}

/**
 * Returns PROOF(first, D[0:size]), which shows that the first `first` leaves of the tree have not changed. RFC 6962
 * section 2.1.2.
 */
export async function consistencyProof(
  read: ReadSubtree,
  first: number,
  size: number,
): Promise<Uint8Array[]> {
  if (first < 0 || first > size) throw new RangeError(`expected a size of at most ${size}, got ${first}`);
  if (first === 0 || first === size) return [];
  const proof: Uint8Array[] = [];
  let range = { begin: 0, end: size };
  let isWhole = true;
  while (range.end !== first) {
    const middle = range.begin + splitOf(range.end - range.begin);
    const [left, right] = [
      { begin: range.begin, end: middle },
      { begin: middle, end: range.end },
    ];
    proof.unshift(await rangeHash(read, first <= middle ? right : left));
    if (first > middle) isWhole = false;
    range = first <= middle ? left : right;
  }
  if (!isWhole) proof.unshift(await rangeHash(read, range));
  return proof;
}

/**
 * Computes the root to which an inclusion proof leads. Returns undefined for an index outside the tree and for a
 * proof of the wrong length. RFC 9162 section 2.1.3.2.
 */
export function rootOfInclusion(
  { leaf, index, size }: { readonly leaf: Uint8Array; readonly index: number; readonly size: number },
  proof: readonly Uint8Array[],
): Uint8Array | undefined {
  if (index >= size) return undefined;
  let [at, last, root] = [index, size - 1, leaf];
  for (const sibling of proof) {
    if (last === 0) return undefined;
    if (at % 2 === 1 || at === last) {
      root = nodeHash(sibling, root);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      root = nodeHash(root, sibling);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 ? root : undefined;
}

/** The number of a tree's leaves and its root. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/**
 * Returns whether the proof shows that the tree `first` is the beginning of the tree `second`. RFC 9162 section
 * 2.1.4.2.
 */
export function isConsistent(first: TreeHead, second: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (first.size > second.size) return false;
  if (first.size === second.size) return proof.length === 0 && isEqual(first.root, second.root);
  if (first.size === 0) return proof.length === 0 && isEqual(first.root, emptyRoot);
  const path = isPowerOfTwo(first.size) ? [first.root, ...proof] : [...proof];
  let [at, last] = [first.size - 1, second.size - 1];
  while (at % 2 === 1) [at, last] = [half(at), half(last)];
  const begin = path.shift();
  if (begin === undefined) return false;
  let [firstRoot, secondRoot] = [begin, begin];
  for (const hash of path) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      firstRoot = nodeHash(hash, firstRoot);
      secondRoot = nodeHash(hash, secondRoot);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      secondRoot = nodeHash(secondRoot, hash);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && isEqual(firstRoot, first.root) && isEqual(secondRoot, second.root);
}

/** Returns MTH of 2^k hashes (RFC 6962 section 2.1). */
export function rootOfHashes(hashes: readonly Uint8Array[]): Uint8Array {
  let row = hashes;
  while (row.length > 1) {
    const parents: Uint8Array[] = [];
    for (let index = 0; index < row.length; index += 2) parents.push(nodeHash(row[index]!, row[index + 1]!));
    row = parents;
  }
  return row[0]!;
}

/** Returns the largest power of two below `count`. */
function splitOf(count: number): number {
  return 2 ** Math.floor(Math.log2(count - 1));
}

function isPowerOfTwo(count: number): boolean {
  return count >= 1 && Number.isInteger(Math.log2(count));
}

function half(count: number): number {
  return Math.floor(count / 2);
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
