import { hash } from 'node:crypto';
import { ed25519Verify } from '../ed25519.ts';
import type { TreeHead } from './merkle-tree.ts';

// Source: C2SP signed-note, tlog-checkpoint.

const ED25519 = 1;
const KEY_BYTES = 32;
const ID_BYTES = 4;
const SIGNATURE_BYTES = 64;

/** The public key with which the checkpoints of a log are verified. */
export interface NoteVerifier {
  /** The name of the key, which is also the origin of the log. */
  readonly name: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** The size and the root of a log, which its key signs. */
export interface Checkpoint extends TreeHead {
  readonly origin: string;
}

/** Returns the text of the checkpoint, which is what the key signs. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
}

/**
 * Returns the text with its signature, in the format of a signed note. `signature`: Ed25519 over the text, 64 bytes.
 */
export function signedNote(text: string, verifier: NoteVerifier, signature: Uint8Array): string {
  const value = Buffer.concat([keyId(verifier), signature]).toString('base64');
  return `${text}\n— ${verifier.name} ${value}\n`;
}

/** Returns the first 4 bytes of SHA-256(name || 0x0A || 0x01 || public key). */
function keyId({ name, publicKey }: NoteVerifier): Buffer {
  const key = Buffer.concat([Buffer.from(`${name}\n`), Uint8Array.of(ED25519), publicKey]);
  return hash('sha256', key, 'buffer').subarray(0, ID_BYTES);
}

/** Writes a verifier key as text: `<name>+<hex of key id>+<base64 of 0x01 || public key>`. */
export function writeVerifierKey(verifier: NoteVerifier): string {
  const key = Buffer.concat([Uint8Array.of(ED25519), verifier.publicKey]);
  return `${verifier.name}+${keyId(verifier).toString('hex')}+${key.toString('base64')}`;
}

/** Parses the text of a verifier key. Returns undefined if it is not a valid Ed25519 verifier key. */
export function readVerifierKey(text: string): NoteVerifier | undefined {
  const [, name = '', id, encoded = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text) ?? [];
  const key = Buffer.from(encoded, 'base64');
  if (key.length !== 1 + KEY_BYTES || key[0] !== ED25519) return undefined;
  const verifier = { name, publicKey: key.subarray(1) };
  return keyId(verifier).toString('hex') === id ? verifier : undefined;
}

/**
 * Returns the checkpoint in a signed note, or undefined if the note is malformed or has no valid signature by the
 * verifier. Signatures by others, such as witnesses, are ignored. So are lines after the root, although the signature
 * covers them.
 */
export function openCheckpoint(note: string, verifier: NoteVerifier): Checkpoint | undefined {
  const end = note.lastIndexOf('\n\n');
  if (end === -1 || !note.endsWith('\n')) return undefined;
  const text = note.slice(0, end + 1);
  const id = keyId(verifier);
  const isSigned = note
    .slice(end + 2, -1)
    .split('\n')
    .some((line) => {
      // The em dash is escaped, because the program must be ASCII and the bundler only escapes strings.
      const [, name, value = ''] = /^\u2014 (\S+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? [];
      const bytes = Buffer.from(value, 'base64');
      if (bytes.toString('base64') !== value) return false;
      if (name !== verifier.name || bytes.length !== ID_BYTES + SIGNATURE_BYTES) return false;
      if (!id.equals(bytes.subarray(0, ID_BYTES))) return false;
      return ed25519Verify(bytes.subarray(ID_BYTES), Buffer.from(text), verifier.publicKey);
    });
  return isSigned ? readCheckpointText(text) : undefined;
}

function readCheckpointText(text: string): Checkpoint | undefined {
  const [origin = '', size = '', root = ''] = text.split('\n');
  const bytes = Buffer.from(root, 'base64');
  if (origin === '' || !/^(0|[1-9]\d{0,15})$/.test(size) || bytes.toString('base64') !== root)
    return undefined;
  return bytes.length === 32 ? { origin, size: Number(size), root: bytes } : undefined;
}
