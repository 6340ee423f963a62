import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  checkpointText,
  openCheckpoint,
  readVerifierKey,
  signedNote,
  writeVerifierKey,
} from '../../../src/engine/crypto/tlog/checkpoint.ts';
import {
  consistencyProof,
  inclusionProof,
  isConsistent,
  leafHash,
  rootOf,
  rootOfInclusion,
} from '../../../src/engine/crypto/tlog/merkle-tree.ts';
import { readProof, writeProof } from '../../../src/engine/crypto/tlog/proof.ts';
import {
  appendToTiles,
  hashesOf,
  readBundle,
  subtreesOf,
  tilePath,
  tilesAt,
  writeBundle,
} from '../../../src/engine/crypto/tlog/tiles.ts';
import { naiveConsistency, naivePath, naiveRoot } from '../../integration/audit/naive-merkle.ts';

const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('hex');
const hexAll = (list: readonly Uint8Array[]) => list.map(hex);
const entriesOf = (count: number) => Array.from({ length: count }, (_, at) => Buffer.from(`entry ${at}`));

/** A tree in tiles, grown in steps of uneven length. */
async function treeOf(entries: readonly Buffer[], step: number) {
  const tiles = new Map<string, Uint8Array>();
  const readTile = async (level: number, index: number) => tiles.get(`${level}/${index}`) ?? Buffer.alloc(0);
  for (let size = 0; size < entries.length; size += step) {
    const leaves = entries.slice(size, size + step).map(leafHash);
    for (const tile of await appendToTiles(readTile, size, leaves)) {
      tiles.set(`${tile.level}/${tile.index}`, tile.hashes);
    }
  }
  return { tiles, read: subtreesOf(readTile) };
}

describe('the tree', () => {
  const entries = entriesOf(70_000);

  test.each([0, 1, 2, 3, 7, 8, 255, 256, 257, 1000])(
    'the tree of %i entries has the root of RFC 6962',
    async (size) => {
      const { read } = await treeOf(entries.slice(0, size), 300);
      expect(hex(await rootOf(read, size))).toBe(hex(naiveRoot(entries.slice(0, size))));
    },
  );

  test('the tree has the tiles of the example in C2SP tlog-tiles', async () => {
    const { tiles, read } = await treeOf(entries, 4096);
    expect(hex(await rootOf(read, 70_000))).toBe(hex(naiveRoot(entries)));
    const widths = [...tiles].map(([name, hashes]) => [name, hashesOf(hashes).length] as const);
    const at = (level: number) => widths.filter(([name]) => name.startsWith(`${level}/`));
    expect(at(0)).toHaveLength(274);
    expect(at(0).at(-1)).toEqual(['0/273', 112]);
    expect(at(1)).toEqual([
      ['1/0', 256],
      ['1/1', 17],
    ]);
    expect(at(2)).toEqual([['2/0', 1]]);
    expect([0, 1, 2, 3].map((level) => tilesAt(level, 70_000))).toEqual([
      { full: 273, partial: 112 },
      { full: 1, partial: 17 },
      { full: 0, partial: 1 },
      { full: 0, partial: 0 },
    ]);
  });

  test('proves inclusion and consistency as RFC 6962 defines them, for every size up to 40', async () => {
    for (let size = 1; size <= 40; size += 1) {
      const some = entries.slice(0, size);
      const { read } = await treeOf(some, 7);
      const second = { size, root: naiveRoot(some) };
      for (let index = 0; index < size; index += 1) {
        const proof = await inclusionProof(read, index, size);
        expect(hexAll(proof)).toEqual(hexAll(naivePath(index, some)));
        const leaf = leafHash(some[index]!);
        expect(hex(rootOfInclusion({ leaf, index, size }, proof))).toBe(hex(second.root));
        if (size > 1) expect(rootOfInclusion({ leaf, index, size }, proof.slice(1))).not.toEqual(second.root);
        expect(rootOfInclusion({ leaf: leafHash(Buffer.from('?')), index, size }, proof)).not.toEqual(
          second.root,
        );
      }
      for (let before = 0; before <= size; before += 1) {
        const first = { size: before, root: naiveRoot(some.slice(0, before)) };
        const proof = await consistencyProof(read, before, size);
        if (before > 0) expect(hexAll(proof)).toEqual(hexAll(naiveConsistency(before, some)));
        expect(isConsistent(first, second, proof)).toBe(true);
        if (before === 0) continue;
        const other = { size: before, root: naiveRoot([Buffer.from('other'), ...some.slice(1, before)]) };
        expect(isConsistent(other, second, proof)).toBe(false);
        expect(isConsistent(first, { size, root: other.root }, proof)).toBe(false);
      }
    }
  });
});

test('paths are those of C2SP tlog-tiles', () => {
  expect(tilePath(0, 1_234_067, 256)).toBe('tile/0/x001/x234/067');
  expect(tilePath('entries', 0, 256)).toBe('tile/entries/000');
  expect(tilePath(1, 273, 112)).toBe('tile/1/273.p/112');
});

test('a bundle has entries of up to 65,535 bytes; a cut one is recognized', () => {
  const entries = [Buffer.from('a'), Buffer.alloc(0), Buffer.alloc(65_535, 7)];
  const bundle = writeBundle(entries);
  expect(bundle.subarray(0, 5).toString('hex')).toBe('0001610000');
  expect(readBundle(bundle)).toEqual(entries);
  expect(readBundle(bundle.subarray(0, -1))).toBeUndefined();
  expect(readBundle(bundle.subarray(0, 1))).toBeUndefined();
  expect(() => writeBundle([Buffer.alloc(65_536)])).toThrow(RangeError);
});

describe('a checkpoint', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url');
  const verifier = { name: 'example.com/log', publicKey: raw };
  const root = createHash('sha256').update('root').digest();
  const text = checkpointText({ origin: verifier.name, size: 7, root });
  const note = signedNote(text, verifier, sign(null, Buffer.from(text), privateKey));

  test('a checkpoint is a signed note: three lines, an empty line, the signature with the id of its key', () => {
    expect(text).toBe(`example.com/log\n7\n${root.toString('base64')}\n`);
    // SHA-256(name || 0x0A || 0x01 || key)[:4], computed on its own.
    const id = createHash('sha256').update('example.com/log\n\x01').update(raw).digest().subarray(0, 4);
    expect(writeVerifierKey(verifier)).toBe(
      `example.com/log+${id.toString('hex')}+${Buffer.concat([Uint8Array.of(1), raw]).toString('base64')}`,
    );
    const [, value = ''] = /\n\n— example\.com\/log (\S+)\n$/.exec(note) ?? [];
    expect(Buffer.from(value, 'base64').subarray(0, 4)).toEqual(id);
    expect(openCheckpoint(note, verifier)).toEqual({ origin: verifier.name, size: 7, root });
    expect(readVerifierKey(writeVerifierKey(verifier))).toEqual(verifier);
  });

  test('a checkpoint has a signature that openssl verifies', () => {
    const folder = mkdtempSync(join(tmpdir(), 'note-'));
    try {
      const file = (name: string, content: string | Buffer) => {
        writeFileSync(join(folder, name), content);
        return join(folder, name);
      };
      const value = Buffer.from(note.trimEnd().split(' ').at(-1)!, 'base64');
      const args = [
        ...['pkeyutl', '-verify', '-pubin', '-inkey'],
        file('key.pem', publicKey.export({ format: 'pem', type: 'spki' })),
        ...['-rawin', '-in', file('text', text), '-sigfile', file('signature', value.subarray(4))],
      ];
      expect(execFileSync('openssl', args, { encoding: 'utf8' })).toContain(
        'Signature Verified Successfully',
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a checkpoint is refused when anything in it was changed, and accepted with the signatures of witnesses', () => {
    const witnessed = `${note}— witness.example ${Buffer.alloc(68, 1).toString('base64')}\n`;
    expect(openCheckpoint(witnessed, verifier)?.size).toBe(7);
    const others = [
      note.replace('\n7\n', '\n8\n'),
      note.replace('example.com/log\n', 'example.com/lag\n'),
      note.replace('\n\n', '\n'),
      note.slice(0, -1),
      `${text}\n`,
      '',
    ];
    for (const other of others) expect(openCheckpoint(other, verifier)).toBeUndefined();
    expect(openCheckpoint(note, { ...verifier, publicKey: Buffer.alloc(32, 1) })).toBeUndefined();
    expect(readVerifierKey(writeVerifierKey(verifier).replace('example', 'exemple'))).toBeUndefined();
  });

  test('a checkpoint is part of a proof', () => {
    const proof = { index: 3, hashes: [root, root], checkpoint: note };
    const written = writeProof(proof);
    expect(written).toBe(
      `c2sp.org/tlog-proof@v1\nindex 3\n${root.toString('base64')}\n${root.toString('base64')}\n\n${note}`,
    );
    expect(readProof(written)).toEqual(proof);
    expect(readProof(writeProof({ ...proof, hashes: [] }))).toEqual({ ...proof, hashes: [] });
    expect(readProof(note)).toBeUndefined();
  });
});
