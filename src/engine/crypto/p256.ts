import { createECDH, createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** Thrown when a string is not a P-256 public key in an accepted format. */
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

// Curve P-256: y² = x³ - 3x + b over the field of P, of prime order N. Source: SP 800-186 section 3.2.1.3.
const P = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;

const PEM_HEAD = '-----BEGIN PUBLIC KEY-----';
const PEM_TAIL = '-----END PUBLIC KEY-----';
const MAX_TEXT_LENGTH = 2048;
const RAW_SIGNATURE_BYTES = 64;

// Caches imported public keys, because importing a key takes longer than verifying a signature. Private keys are never
// cached.
const keyObjects = new LRUCache<string, KeyObject>({ max: 10_000 });

// Caches valid signatures with the key and the digest. The signatures of one request are verified several times: by
// its handler, by each rerun of the handler, and by a key store in this process. A small cache suffices, because later
// requests have other signatures.
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

/** Returns the 65 bytes `0x04 || x || y` of a public key that `parseP256PublicKey` has returned. */
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
  // NOTE: one in 2^48 DER signatures is 64 bytes long. It is then read as r || s and fails.
  const isValid =
    signature.length === RAW_SIGNATURE_BYTES
      ? verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
      : verify('sha256', message, key, signature);
  if (isValid) verifiedLately.set(text, { publicKey, digest });
  return isValid;
}

interface P256KeyPair {
  /** Base64 of the PKCS #8 DER, the format of authorization keys. */
  readonly privateKeyPkcs8: string;
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKey: string;
}

/**
 * Derives a P-256 key pair from a random seed: `d = seed mod (n - 1) + 1`. Source: FIPS 186-5 appendix A.2.1.
 *
 * @param seed 48 uniformly random bytes. They exceed the order by 128 bits, so the modulo bias is negligible.
 */
export function p256KeyPairFromSeed(seed: Uint8Array): P256KeyPair {
  if (seed.length !== 48) throw new RangeError(`expected a seed of 48 bytes, got ${seed.length}`);
  const scalar = (BigInt(`0x${Buffer.from(seed).toString('hex')}`) % (N - 1n)) + 1n;
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

/** Decodes canonical standard base64 (RFC 4648 section 4). Returns undefined for any other string. */
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
 * Decodes the only block of a PEM file. RFC 7468 permits other lines around a block (section 2) and white space
 * anywhere in its base64 (section 3).
 *
 * CHOICE: two public keys are rejected, although OpenSSL takes the first. A caller who sends two does not know which
 * one becomes the owner.
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

// Converts a key with a compressed point. OpenSSL checks the curve equation when it imports the key.
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
 * Encodes a point in the canonical form that `parseP256PublicKey` returns.
 *
 * @param point the 65 bytes `0x04 || x || y`.
 */
export function encodeP256PublicKey(point: Uint8Array): string {
  return Buffer.concat([UNCOMPRESSED_PREFIX, point]).toString('base64');
}

interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

/**
 * Returns a function that finds the public keys under which an ECDSA signature verifies, without trying keys. A
 * signature and a digest have at most two such keys (four when r + n < p). The cost does not depend on how many keys
 * may sign. Source: SEC 1 section 4.1.6: Q = (s/r)R - (e/r)G, for both points R with the x-coordinate r.
 *
 * @param signature in DER, or the 64 bytes `r || s`.
 * @returns a function from a digest of 32 bytes to those keys in the canonical form of `parseP256PublicKey`; undefined
 * for a signature that verifies under no key.
 */
export function recoverP256PublicKeys(signature: Uint8Array): ((digest: Uint8Array) => string[]) | undefined {
  const [r, s] = signature.length === 64 ? readRaw(signature) : (readDer(signature) ?? [0n, 0n]);
  if (r <= 0n || r >= N || s <= 0n || s >= N) return undefined;
  const inverse = invert(r, N);
  const scalar = (s * inverse) % N;
  const scaled = [r, r + N].flatMap((x) => (x < P ? (multiplyX(x, scalar) ?? []) : []));
  if (scaled.length === 0) return undefined;
  return (digest) => {
    const e = BigInt(`0x${Buffer.from(digest).toString('hex')}`) % N;
    const base = (e * inverse) % N;
    return scaled.flatMap((point) => keysOf(point, base));
  };
}

/** Returns the points A - B and -A - B, where B = base·G, as public keys. */
function keysOf(a: Point, base: bigint): string[] {
  if (base === 0n) return [encode(a), encode({ x: a.x, y: P - a.y })];
  const b = multiplyBase(base);
  // If A = B or A = -B, one of the two results is the point at infinity, which is not a key, and the other is -2B.
  if (a.x === b.x) return [encode(multiplyBase(N - ((2n * base) % N)))];
  const inverse = invert(mod(a.x - b.x), P);
  return [a.y, P - a.y].map((y) => {
    const slope = (mod(y + b.y) * inverse) % P;
    const x = mod(slope * slope - a.x - b.x);
    return encode({ x, y: mod(slope * (a.x - x) - y) });
  });
}

/**
 * Returns one of the two points ±scalar·R, where R has this x-coordinate. Returns undefined if the curve has no such
 * point. OpenSSL multiplies: Diffie-Hellman returns the x-coordinate of the product, from which y can be computed
 * except for its sign.
 */
function multiplyX(x: bigint, scalar: bigint): Point | undefined {
  if (ordinateOf(x) === undefined) return undefined;
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(toBytes(scalar));
  const productX = toBigInt(curve.computeSecret(Buffer.concat([Buffer.of(2), toBytes(x)])));
  const y = ordinateOf(productX);
  return y === undefined ? undefined : { x: productX, y };
}

function multiplyBase(scalar: bigint): Point {
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(toBytes(scalar));
  const point = curve.getPublicKey();
  return { x: toBigInt(point.subarray(1, 33)), y: toBigInt(point.subarray(33)) };
}

function ordinateOf(x: bigint): bigint | undefined {
  const square = mod(x * x * x - 3n * x + B);
  // P = 3 mod 4, so this power is a square root if there is one.
  const root = power(square, (P + 1n) / 4n);
  return (root * root) % P === square ? root : undefined;
}

function encode({ x, y }: Point): string {
  return encodeP256PublicKey(Buffer.concat([Buffer.of(4), toBytes(x), toBytes(y)]));
}

function readRaw(bytes: Uint8Array): [bigint, bigint] {
  return [toBigInt(bytes.subarray(0, 32)), toBigInt(bytes.subarray(32))];
}

// Reads SEQUENCE { INTEGER r, INTEGER s }. NOTE: not strict, because every key that is found is confirmed by a
// verification.
function readDer(bytes: Uint8Array): [bigint, bigint] | undefined {
  const r = readInteger(bytes, 2);
  const s = r && readInteger(bytes, r.end);
  return r === undefined || s === undefined || s.end !== bytes.length ? undefined : [r.value, s.value];
}

function readInteger(bytes: Uint8Array, at: number): { value: bigint; end: number } | undefined {
  const [tag, length = 0] = bytes.subarray(at);
  const end = at + 2 + length;
  // An integer of 256 bits takes 33 bytes if a leading zero byte keeps it positive.
  if (tag !== 2 || length === 0 || length > 33 || end > bytes.length) return undefined;
  return { value: toBigInt(bytes.subarray(at + 2, end)), end };
}

function toBigInt(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

function toBytes(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

function power(base: bigint, exponent: bigint): bigint {
  let [result, factor] = [1n, base];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % P;
    factor = (factor * factor) % P;
  }
  return result;
}

/**
 * Computes the inverse modulo a prime with the extended Euclidean algorithm. All inputs are public, so the run time
 * may depend on them.
 */
function invert(value: bigint, modulus: bigint): bigint {
  let [previous, current] = [modulus, value];
  let [before, factor] = [0n, 1n];
  while (current !== 0n) {
    const quotient = previous / current;
    [previous, current] = [current, previous - quotient * current];
    [before, factor] = [factor, before - quotient * factor];
  }
  return before < 0n ? before + modulus : before;
}
