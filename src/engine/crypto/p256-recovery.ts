import { createECDH } from 'node:crypto';
import { encodeP256PublicKey } from './p256.ts';

// Curve P-256: y² = x³ - 3x + b over the field of P, of prime order N. Source: SP 800-186 section 3.2.1.3.
const P = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;

interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

/**
 * Finds the public keys under which an ECDSA signature verifies, without trying keys. A signature and a digest have
 * at most two such keys (four when r + n < p). The cost does not depend on how many keys may sign. Source: SEC 1
 * section 4.1.6.
 *
 * @param signature in DER, or the 64 bytes `r || s`.
 * @returns a function from a digest of 32 bytes to those keys in the canonical form of `parseP256PublicKey`;
 * undefined for a signature that verifies under no key.
 */
// Q = (s/r)R - (e/r)G, for both points R with the x-coordinate r
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

/** ±A - B with B = base·G, as public keys. */
function keysOf(a: Point, base: bigint): string[] {
  if (base === 0n) return [encode(a), encode({ x: a.x, y: P - a.y })];
  const b = multiplyBase(base);
  // If A = B or A = -B, one of the two is the point at infinity, which is not a key, and the other is -2B.
  if (a.x === b.x) return [encode(multiplyBase(N - ((2n * base) % N)))];
  const inverse = invert(mod(a.x - b.x), P);
  return [a.y, P - a.y].map((y) => {
    const slope = (mod(y + b.y) * inverse) % P;
    const x = mod(slope * slope - a.x - b.x);
    return encode({ x, y: mod(slope * (a.x - x) - y) });
  });
}

/**
 * One of the points ±scalar·R, for R with this x-coordinate; undefined when the curve has no such point. OpenSSL
 * multiplies: Diffie-Hellman returns the x-coordinate of the product, from which y follows except for its sign.
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
  // P = 3 mod 4
  const root = power(square, (P + 1n) / 4n);
  return (root * root) % P === square ? root : undefined;
}

function encode({ x, y }: Point): string {
  return encodeP256PublicKey(Buffer.concat([Buffer.of(4), toBytes(x), toBytes(y)]));
}

function readRaw(bytes: Uint8Array): [bigint, bigint] {
  return [toBigInt(bytes.subarray(0, 32)), toBigInt(bytes.subarray(32))];
}

// SEQUENCE { INTEGER r, INTEGER s }. NOTE: not strict, because keys that are found are confirmed by a verification.
function readDer(bytes: Uint8Array): [bigint, bigint] | undefined {
  const r = readInteger(bytes, 2);
  const s = r && readInteger(bytes, r.end);
  return r === undefined || s === undefined || s.end !== bytes.length ? undefined : [r.value, s.value];
}

function readInteger(bytes: Uint8Array, at: number): { value: bigint; end: number } | undefined {
  const [tag, length = 0] = bytes.subarray(at);
  const end = at + 2 + length;
  // 33 bytes hold an integer of 256 bits after a zero byte.
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

/** The inverse modulo a prime, by the extended Euclidean algorithm. All inputs are public, so the time may vary. */
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
