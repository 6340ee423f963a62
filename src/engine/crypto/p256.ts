import { createECDH, createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** The text is not a P-256 public key in an accepted format. */
export class InvalidPublicKeyError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'InvalidPublicKeyError';
  }
}

// Per point format (compressed or uncompressed), a P-256 key has one DER encoding as SubjectPublicKeyInfo (RFC 5480):
// SEQUENCE { SEQUENCE { OID ecPublicKey, OID prime256v1 }, BIT STRING { point } }
const UNCOMPRESSED_PREFIX = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex');
const COMPRESSED_PREFIX = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex');
const OID_EC_PUBLIC_KEY = Buffer.from('06072a8648ce3d0201', 'hex');
const OID_PRIME256V1 = Buffer.from('06082a8648ce3d030107', 'hex');

// PKCS #8 of RFC 5958 around RFC 5915: version 0, ecPublicKey on prime256v1, { 1, private key, [1] public key }
const PKCS8_HEAD = Buffer.from(
  '308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420',
  'hex',
);
const PKCS8_MIDDLE = Buffer.from('a144034200', 'hex');

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const PEM_HEAD = '-----BEGIN PUBLIC KEY-----';
const PEM_TAIL = '-----END PUBLIC KEY-----';
const MAX_TEXT_LENGTH = 2048;
const RAW_SIGNATURE_BYTES = 64;

// Parsed keys. Importing a key takes longer than verifying a signature. Only public keys are cached, never private
// keys.
const keyObjects = new LRUCache<string, KeyObject>({ max: 10_000 });

// Verified signatures with the key and the digest. A request is verified several times: by its handler, by each
// repeated run of the handler, and by a key store in this process. A small cache suffices, because requests are not
// repeated.
const verifiedLately = new LRUCache<string, { readonly publicKey: string; readonly digest: string }>({
  max: 128,
});

/**
 * Parses a P-256 public key given as a DER SubjectPublicKeyInfo, in base64 or as a PEM block. Source: RFC 5480
 * section 2, RFC 7468 section 13.
 *
 * @returns the canonical form: base64 of the 91-byte SubjectPublicKeyInfo with an uncompressed point.
 * @throws InvalidPublicKeyError
 */
export function parseP256PublicKey(text: string): string {
  if (text.length > MAX_TEXT_LENGTH) {
    throw new InvalidPublicKeyError(`expected at most ${MAX_TEXT_LENGTH} characters, got ${text.length}`);
  }
  const der = text.includes('-----') ? decodePem(text) : decodeBase64Der(text);
  return encodeP256PublicKey(pointOf(der));
}

/** The 65 bytes `0x04 || x || y` of a key in the canonical form of `parseP256PublicKey`. */
export function p256PublicKeyPoint(publicKey: string): Uint8Array {
  return new Uint8Array(Buffer.from(publicKey, 'base64').subarray(UNCOMPRESSED_PREFIX.length));
}

/**
 * Verifies an ECDSA signature with SHA-256 over `message`. Returns false for a malformed signature. Source: FIPS
 * 186-5 section 6.4.2.
 *
 * @param publicKey as returned by `parseP256PublicKey`.
 * @param signature in DER, or the 64 bytes `r || s`; s may be high or low.
 */
export function verifyP256(publicKey: string, message: Uint8Array, signature: Uint8Array): boolean {
  const digest = hash('sha256', message, 'base64');
  const text = Buffer.from(signature.buffer, signature.byteOffset, signature.byteLength).toString('base64');
  const known = verifiedLately.get(text);
  if (known?.publicKey === publicKey && known.digest === digest) return true;
  const key = keyObjectOf(publicKey);
  // NOTE: one in 2^48 DER signatures is 64 bytes long. It is read as r || s and does not verify.
  const isValid =
    signature.length === RAW_SIGNATURE_BYTES
      ? verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
      : verify('sha256', message, key, signature);
  if (isValid) verifiedLately.set(text, { publicKey, digest });
  return isValid;
}

export interface P256KeyPair {
  /** Base64 of the PKCS #8 DER, the format of authorization keys. */
  readonly privateKeyPkcs8: string;
  /** Base64 of the SubjectPublicKeyInfo, canonical. */
  readonly publicKey: string;
}

/**
 * Derives a P-256 key pair from a random seed: `d = seed mod (n - 1) + 1`. Source: FIPS 186-5 appendix A.2.1.
 *
 * @param seed 48 uniformly random bytes. They exceed the order by 128 bits, so the modulo bias is negligible.
 */
export function p256KeyPairFromSeed(seed: Uint8Array): P256KeyPair {
  if (seed.length !== 48) throw new RangeError(`expected a seed of 48 bytes, got ${seed.length}`);
  const scalar = (BigInt(`0x${Buffer.from(seed).toString('hex')}`) % (ORDER - 1n)) + 1n;
  const privateKey = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(privateKey);
  const point = curve.getPublicKey();
  const pkcs8 = Buffer.concat([PKCS8_HEAD, privateKey, PKCS8_MIDDLE, point]);
  const pair = { privateKeyPkcs8: pkcs8.toString('base64'), publicKey: encodeP256PublicKey(point) };
  privateKey.fill(0);
  pkcs8.fill(0);
  return pair;
}

/** Decodes canonical standard base64 (RFC 4648 section 4); undefined for any other text. */
export function decodeCanonicalBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64');
  return text !== '' && bytes.toString('base64') === text ? new Uint8Array(bytes) : undefined;
}

function keyObjectOf(publicKey: string): KeyObject {
  const cached = keyObjects.get(publicKey);
  if (cached !== undefined) return cached;
  const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
  keyObjects.set(publicKey, key);
  return key;
}

/**
 * The bytes of the only block of a PEM text. RFC 7468 permits other lines around a block (section 2) and whitespace
 * anywhere in its base64 (section 3).
 *
 * CHOICE: text with two public keys is refused, although OpenSSL takes the first. A caller who sends two does not
 * know which one becomes the owner.
 */
function decodePem(text: string): Buffer {
  const start = text.indexOf(PEM_HEAD);
  const end = text.indexOf(PEM_TAIL, start);
  const lineBefore = text.slice(text.lastIndexOf('\n', start) + 1, start);
  const [lineAfter = ''] = text.slice(end + PEM_TAIL.length).split('\n', 1);
  const isAlone = text.lastIndexOf(PEM_HEAD) === start && (lineBefore + lineAfter).trim() === '';
  if (start === -1 || end === -1 || !isAlone) {
    throw new InvalidPublicKeyError('expected a single PEM block of type `PUBLIC KEY`');
  }
  const body = text.slice(start + PEM_HEAD.length, end).replaceAll(/\s/g, '');
  if (body.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(body)) {
    throw new InvalidPublicKeyError('expected base64 inside the PEM block');
  }
  return Buffer.from(body, 'base64');
}

function decodeBase64Der(text: string): Buffer {
  const der = decodeCanonicalBase64(text);
  if (der === undefined) {
    throw new InvalidPublicKeyError('expected base64 of a DER SubjectPublicKeyInfo, or a PEM block');
  }
  return Buffer.from(der);
}

function pointOf(der: Buffer): Buffer {
  for (const [prefix, size] of [
    [UNCOMPRESSED_PREFIX, 65],
    [COMPRESSED_PREFIX, 33],
  ] as const) {
    if (der.length === prefix.length + size && der.subarray(0, prefix.length).equals(prefix)) {
      return uncompressed(der);
    }
  }
  throw new InvalidPublicKeyError(reasonForRefusal(der));
}

// OpenSSL checks the curve equation when it imports the key.
function uncompressed(der: Buffer): Buffer {
  try {
    const { x, y } = createPublicKey({ key: der, format: 'der', type: 'spki' }).export({ format: 'jwk' });
    return Buffer.concat([
      Buffer.of(4),
      Buffer.from(x ?? '', 'base64url'),
      Buffer.from(y ?? '', 'base64url'),
    ]);
  } catch {
    throw new InvalidPublicKeyError('expected a point on the curve P-256');
  }
}

function reasonForRefusal(der: Buffer): string {
  if ((der.length === 65 && der[0] === 4) || (der.length === 33 && (der[0] === 2 || der[0] === 3))) {
    return 'expected a DER SubjectPublicKeyInfo, got a raw point';
  }
  if (der[0] !== 0x30) return 'expected a DER SubjectPublicKeyInfo';
  const declared = der[1] !== undefined && der[1] < 0x80 ? der[1] + 2 : undefined;
  if (declared !== undefined && der.length < declared) {
    return `expected ${declared} bytes of DER, got ${der.length}`;
  }
  if (declared !== undefined && der.length > declared) {
    return `expected ${declared} bytes of DER, got ${der.length - declared} more`;
  }
  if (der.includes(OID_EC_PUBLIC_KEY) && !der.includes(OID_PRIME256V1)) {
    return 'expected a key on the curve P-256, got one on another curve';
  }
  return 'expected a DER SubjectPublicKeyInfo of a key on the curve P-256';
}

/**
 * Encodes a point as the canonical form of `parseP256PublicKey`.
 *
 * @param point the 65 bytes `0x04 || x || y`.
 */
export function encodeP256PublicKey(point: Uint8Array): string {
  return Buffer.concat([UNCOMPRESSED_PREFIX, point]).toString('base64');
}
