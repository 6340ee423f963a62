import { closeSync, openSync, readSync } from 'node:fs';
import { base58 } from '@scure/base';

/** Bytes to search for, by name. Each has at least 8 bytes. */
export type Wanted = ReadonlyMap<string, Buffer>;

/**
 * Returns the forms in which a program may store a secret: raw, as the limbs of a large number, and as text in hex,
 * base64 and base58. Each text is also searched with JavaScript's two bytes per character.
 */
export function formsOf(name: string, secret: Uint8Array): [string, Buffer][] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  return [
    [name, bytes],
    [`${name}, reversed`, Buffer.from(bytes.toReversed())],
    ...textForms(`${name} in hex`, hex),
    ...textForms(`${name} in capital hex`, hex.toUpperCase()),
    ...textForms(`${name} in base58`, base58.encode(bytes)),
    ...[0, 1, 2].flatMap((shift) => [
      ...textForms(`${name} in base64 from ${shift}`, base64Within(bytes, shift, 'base64')),
      ...textForms(`${name} in base64url from ${shift}`, base64Within(bytes, shift, 'base64url')),
    ]),
  ];
}

/** Returns a text as bytes, with one and with two bytes per character. */
export function textForms(name: string, text: string): [string, Buffer][] {
  return [
    [name, Buffer.from(text, 'latin1')],
    [`${name}, two bytes per character`, Buffer.from(text, 'utf16le')],
  ];
}

/** Returns the characters that depend only on these bytes, if `before` modulo 3 other bytes come before them. */
function base64Within(bytes: Buffer, before: number, encoding: 'base64' | 'base64url'): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString(encoding);
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
}

/** Returns the names of the secrets that these bytes contain, in one pass. */
export function searchIn(bytes: Buffer, wanted: Wanted, found = new Set<string>()): Set<string> {
  const { starts, byStart } = indexOf(wanted);
  for (let at = 0; at + 4 <= bytes.length; at += 1) {
    if (starts[bytes[at]! | (bytes[at + 1]! << 8)] === 0) continue;
    for (const [name, each] of byStart.get(bytes.readUInt32LE(at)) ?? []) {
      if (bytes.compare(each, 0, each.length, at, at + each.length) === 0) found.add(name);
    }
  }
  return found;
}

const CHUNK = 16 * 1024 * 1024;

/** Returns the names of the secrets that a file contains. */
export function searchInFile(path: string, wanted: Wanted): Set<string> {
  const found = new Set<string>();
  const overlap = Math.max(...[...wanted.values()].map(({ length }) => length));
  const buffer = Buffer.alloc(CHUNK + overlap);
  const file = openSync(path, 'r');
  try {
    for (let at = 0; ; at += CHUNK) {
      const length = readSync(file, buffer, 0, buffer.length, at);
      if (length === 0) return found;
      searchIn(buffer.subarray(0, length), wanted, found);
    }
  } finally {
    closeSync(file);
  }
}

interface Index {
  /** 1 for each pair of bytes with which a secret begins. */
  readonly starts: Uint8Array;
  /** The secrets by their first four bytes. */
  readonly byStart: ReadonlyMap<number, [string, Buffer][]>;
}

const indexes = new WeakMap<Wanted, Index>();

function indexOf(wanted: Wanted): Index {
  const known = indexes.get(wanted);
  if (known !== undefined) return known;
  const starts = new Uint8Array(65_536);
  const byStart = new Map<number, [string, Buffer][]>();
  for (const [name, each] of wanted) {
    if (each.length < 8) throw new Error(`expected at least 8 bytes to search for, got ${each.length}`);
    const start = each.readUInt32LE(0);
    starts[start & 0xffff] = 1;
    byStart.set(start, [...(byStart.get(start) ?? []), [name, each]]);
  }
  const index = { starts, byStart };
  indexes.set(wanted, index);
  return index;
}
