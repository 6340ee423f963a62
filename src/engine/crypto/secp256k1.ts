import { createRequire } from 'node:module';
import { secp256k1 as noble, schnorr as nobleSchnorr } from '@noble/curves/secp256k1.js';
import bindingsOf from 'secp256k1/lib/index.js';
import { concatBytes, equalBytes, hexToBytes } from './encoding.ts';

/** The curve operations that a Schnorr signature needs. Secrets and scalars are 32 bytes, from 1 to n - 1. */
export interface SchnorrCurve {
  /** Returns 33 bytes: the parity of y, then x. */
  publicKey(secret: Uint8Array): Uint8Array;
  /** Returns n - secret. */
  negateSecret(secret: Uint8Array): Uint8Array;
  /** Returns (secret + tweak) mod n. */
  addToSecret(secret: Uint8Array, tweak: Uint8Array): Uint8Array;
  /** Returns (secret * factor) mod n. */
  multiplySecret(secret: Uint8Array, factor: Uint8Array): Uint8Array;
  /** Returns publicKey + scalar·otherKey, compressed. */
  addMultiple(publicKey: Uint8Array, otherKey: Uint8Array, scalar: Uint8Array): Uint8Array;
}

const EVEN = 0x02;

// CHOICE: zero auxiliary randomness, which BIP-340 allows. So signing needs no source of randomness, and the same
// request always yields the same signature.
const AUXILIARY = new Uint8Array(32);

/** Signs a 32-byte digest (BIP-340). Returns 64 bytes. */
function schnorrSignPortable(digest: Uint8Array, secret: Uint8Array): Uint8Array {
  return nobleSchnorr.sign(digest, secret, AUXILIARY);
}

/**
 * Returns the signature that `schnorrSignPortable` returns, but uses the operations of a faster curve. It is verified
 * before it is returned, as BIP-340 recommends, because a faulty signature can reveal the secret. Source: BIP-340,
 * "Default Signing".
 *
 * NOTE: hashes are not reduced mod n. The curve rejects a hash that is zero or at least n (probability 2^-128).
 */
export function schnorrSign(curve: SchnorrCurve, digest: Uint8Array, secret: Uint8Array): Uint8Array {
  const key = curve.publicKey(secret);
  const keyX = key.subarray(1);
  const wiped: Uint8Array[] = [];
  const wipe = (bytes: Uint8Array): Uint8Array => {
    wiped.push(bytes);
    return bytes;
  };
  try {
    // d = secret if P.y is even, else n - secret
    const d = key[0] === EVEN ? secret : wipe(curve.negateSecret(secret));
    // k' = H_nonce((d xor H_aux(a)) || P.x || m)
    const mask = taggedHash('BIP0340/aux', AUXILIARY);
    const masked = wipe(d.map((byte, index) => byte ^ mask[index]!));
    const nonce = wipe(taggedHash('BIP0340/nonce', masked, keyX, digest));
    const noncePoint = curve.publicKey(nonce);
    const nonceX = noncePoint.subarray(1);
    // k = k' if R.y is even, else n - k'
    const k = noncePoint[0] === EVEN ? nonce : wipe(curve.negateSecret(nonce));
    // e = H_challenge(R.x || P.x || m)
    const challenge = taggedHash('BIP0340/challenge', nonceX, keyX, digest);
    // s = k + e·d mod n
    const s = curve.addToSecret(k, wipe(curve.multiplySecret(d, challenge)));
    // s·G = R + e·P, both points with even y
    const expected = curve.addMultiple(evenPoint(nonceX), evenPoint(keyX), challenge);
    if (!equalBytes(curve.publicKey(s), expected)) {
      throw new Error('expected the computed Schnorr signature to verify');
    }
    return Uint8Array.of(...nonceX, ...s);
  } finally {
    for (const bytes of wiped) bytes.fill(0);
  }
}

/** Returns sha256(sha256(tag) || sha256(tag) || messages) (BIP-340). */
export function taggedHash(tag: string, ...messages: Uint8Array[]): Uint8Array {
  return nobleSchnorr.utils.taggedHash(tag, ...messages);
}

function evenPoint(x: Uint8Array): Uint8Array {
  return Uint8Array.of(EVEN, ...x);
}

/** An ECDSA signature over secp256k1 whose s is in the lower half (BIP-62). */
export interface EcdsaSignature {
  /** r || s, 64 bytes. */
  readonly compact: Uint8Array;
  /** Selects the signer's public key among the candidates that the signature allows: 0 to 3, in practice 0 or 1. */
  readonly recoveryId: number;
}

/**
 * The curve operations for signing and key derivation. Secrets are 32-byte scalars, digests 32 bytes. ECDSA nonces
 * are those of RFC 6979, so every implementation produces the same signatures.
 *
 * NOTE: the exceptions are digests that are not below the order of the curve, for which libsecp256k1 derives a
 * different nonce.
 */
export interface EcBackend {
  readonly name: 'native' | 'noble';
  isValidSecret(secret: Uint8Array): boolean;
  /** Returns 33 bytes compressed or 65 bytes uncompressed. Throws for an invalid secret. */
  publicKey(secret: Uint8Array, compressed: boolean): Uint8Array;
  sign(digest: Uint8Array, secret: Uint8Array): EcdsaSignature;
  /** Returns the 64-byte BIP-340 signature without auxiliary randomness. */
  signSchnorr(digest: Uint8Array, secret: Uint8Array): Uint8Array;
  verify(compact: Uint8Array, digest: Uint8Array, publicKey: Uint8Array): boolean;
  /** Returns the signer's 65-byte public key. Throws if no key can be recovered from the signature. */
  recover(signature: EcdsaSignature, digest: Uint8Array): Uint8Array;
  /** Returns (secret + tweak) mod n as new bytes. Throws if the sum is zero or the tweak is not below n. */
  addToSecret(secret: Uint8Array, tweak: Uint8Array): Uint8Array;
  /** Returns n - secret as new bytes. */
  negateSecret(secret: Uint8Array): Uint8Array;
}

/** An implementation in TypeScript, which runs on every platform. */
export const nobleBackend: EcBackend = {
  name: 'noble',
  isValidSecret: (secret) => secret.length === 32 && noble.utils.isValidSecretKey(secret),
  publicKey: (secret, compressed) => noble.getPublicKey(secret, compressed),
  sign(digest, secret) {
    // noble's format `recovered` is recovery id || r || s.
    const recovered = noble.sign(digest, secret, { prehash: false, lowS: true, format: 'recovered' });
    return { compact: recovered.slice(1), recoveryId: recovered[0] ?? 0 };
  },
  signSchnorr: schnorrSignPortable,
  verify: (compact, digest, publicKey) =>
    noble.verify(compact, digest, publicKey, { prehash: false, lowS: true }),
  recover({ compact, recoveryId }, digest) {
    const signature = noble.Signature.fromBytes(compact, 'compact').addRecoveryBit(recoveryId);
    return signature.recoverPublicKey(digest).toBytes(false);
  },
  addToSecret(secret, tweak) {
    const { Fn } = noble.Point;
    const sum = Fn.add(Fn.fromBytes(secret), Fn.fromBytes(tweak));
    if (Fn.is0(sum)) throw new Error('expected secret + tweak to be non-zero');
    return Fn.toBytes(sum);
  },
  negateSecret(secret) {
    const { Fn } = noble.Point;
    return Fn.toBytes(Fn.neg(Fn.fromBytes(secret)));
  },
};

/**
 * libsecp256k1 through prebuilt N-API bindings; undefined if there is no binary for the platform.
 * docs/decisions/0001-one-accelerated-secp256k1-library.md explains why this library was chosen.
 *
 * NOTE: the main entry of the package loads a JavaScript implementation (`elliptic`), so only its wrapper is
 * imported.
 */
export const nativeBackend: EcBackend | undefined = loadNativeBackend();

/** The backend in use: the native one if it loads, else noble. `assertBackendsAgree` checks that both agree. */
export const ecBackend: EcBackend = nativeBackend ?? nobleBackend;

/**
 * Loads a binary of the npm package `secp256k1`, which the build copies to `dist/native`. For Linux there are two
 * binaries, and only the one for the installed C library loads.
 */
function loadAddon(): { readonly Secp256k1: new () => object } | undefined {
  const require = createRequire(import.meta.url);
  for (const file of ['secp256k1.node', 'secp256k1.glibc.node', 'secp256k1.musl.node']) {
    try {
      return require(`#native/secp256k1/${process.platform}-${process.arch}/${file}`);
    } catch {
      // The binary does not exist or needs another C library.
    }
  }
  return undefined;
}

function loadNativeBackend(): EcBackend | undefined {
  const addon = loadAddon();
  if (addon === undefined) return undefined;
  const native = bindingsOf(new addon.Secp256k1());
  // The native operations on secrets overwrite their first argument, so they get a copy.
  const negateSecret = (secret: Uint8Array): Uint8Array => native.privateKeyNegate(secret.slice());
  const addToSecret = (secret: Uint8Array, tweak: Uint8Array): Uint8Array =>
    native.privateKeyTweakAdd(secret.slice(), tweak);
  // The bindings export no Schnorr signatures, but they export the curve operations that these need.
  const schnorrCurve: SchnorrCurve = {
    publicKey: (secret) => native.publicKeyCreate(secret, true),
    negateSecret,
    addToSecret,
    multiplySecret: (secret, factor) => native.privateKeyTweakMul(secret.slice(), factor),
    addMultiple: (publicKey, otherKey, scalar) =>
      native.publicKeyCombine([publicKey, native.publicKeyTweakMul(otherKey, scalar, true)], true),
  };
  return {
    name: 'native',
    isValidSecret: (secret) => secret.length === 32 && native.privateKeyVerify(secret),
    publicKey: (secret, compressed) => native.publicKeyCreate(secret, compressed),
    sign(digest, secret) {
      const { signature, recid } = native.ecdsaSign(digest, secret);
      return { compact: signature, recoveryId: recid };
    },
    signSchnorr: (digest, secret) => schnorrSign(schnorrCurve, digest, secret),
    verify: (compact, digest, publicKey) => native.ecdsaVerify(compact, digest, publicKey),
    recover: ({ compact, recoveryId }, digest) => native.ecdsaRecover(compact, recoveryId, digest, false),
    addToSecret,
    negateSecret,
  };
}

/**
 * noble's results for fixed inputs: a secret of 32 bytes `fill`, and a digest of 32 bytes 0xff - `fill`. A unit test
 * recomputes them. The fills are chosen so that both parities of public key, recovery id and Schnorr nonce occur.
 */
export const knownAnswers = [
  {
    fill: 2,
    publicKey:
      '044d4b6cd1361032ca9bd2aeb9d900aa4d45d9ead80ac9423374c451a7254d07662a3eada2d0fe208b6d257ceb0f064284662e857f57b66b54c198bd310ded36d0',
    signature:
      '4d930051625fc8320e979c2c0ac0ac16e9ecbb5062bd761329bfc95ed7483ce46e5f990add84ff037dd2a70859bfda162d99569c1d63ce7d896094de970df248',
    recoveryId: 1,
    schnorr:
      '140ba9b5dc1937802b027eb733d58590b2a226337ec78fc90ca59ae45a38c9aa36f1ca42b09e39c9475702bfd7dfbc830b7feb57d93435788082579594244a75',
  },
  {
    fill: 4,
    publicKey:
      '04462779ad4aad39514614751a71085f2f10e1c7a593e4e030efb5b8721ce55b0b199c07969f5442000bea455d72ae826a86bfac9089cb18152ed756ebb2a596f5',
    signature:
      '62d28afefe098db773cc42d7a33bfc5ba8526b44ba168481966b86dc93e6e77f7c8af6eedc59dea0a9fa66ce1cd4602e9a0973026e40b246c379e0fca365dd6f',
    recoveryId: 0,
    schnorr:
      'eda95acbd9f41ae75863bc2dfa0ddeab900b4a3aac87277e73e205b7971be6789c59c415a403b346c78d54ca0ee4139c3a4954c88139f25f8fbf3ddcb4802d89',
  },
];

type KnownAnswer = (typeof knownAnswers)[number];

/** Backends that passed the self-test. A process that starts many servers runs it only once. */
const agreeing = new WeakSet<EcBackend>();

/**
 * Tests the native backend at start: on fixed inputs, it must produce the same public keys and the same ECDSA and
 * Schnorr signatures as noble. It must also recover the signer, accept a valid signature and reject an invalid one.
 * Does nothing without a native backend.
 *
 * NOTE: noble's results are constants, because computing them took 110 ms of CPU at every start.
 *
 * @throws Error, which names the first operation that differs.
 */
export function assertBackendsAgree(native: EcBackend | undefined = nativeBackend): void {
  if (native === undefined || agreeing.has(native)) return;
  // A small table of multiples of G suffices, because the native backend signs.
  noble.Point.BASE.precompute(4);
  for (const answer of knownAnswers) {
    let difference: string | undefined;
    let cause: unknown;
    try {
      difference = findDifference(native, answer);
    } catch (error) {
      difference = 'an error';
      cause = error;
    }
    if (difference === undefined) continue;
    throw new Error(
      `the native secp256k1 backend disagrees with the portable one in ${difference} on vector ${answer.fill}; ` +
        'reinstall this package, or remove its folder `dist/native` to use the portable backend',
      { cause },
    );
  }
  agreeing.add(native);
}

/** Returns the name of the first operation of `native` whose result differs from noble's; undefined if none does. */
function findDifference(native: EcBackend, answer: KnownAnswer): string | undefined {
  const secret = new Uint8Array(32).fill(answer.fill);
  const digest = new Uint8Array(32).fill(0xff - answer.fill);
  const publicKey = hexToBytes(answer.publicKey);
  if (!equalBytes(native.publicKey(secret, false), publicKey)) return '`publicKey`';
  const expected = { compact: hexToBytes(answer.signature), recoveryId: answer.recoveryId };
  const actual = native.sign(digest, secret);
  const isSame = equalBytes(actual.compact, expected.compact) && actual.recoveryId === expected.recoveryId;
  if (!isSame) return '`sign`';
  if (!equalBytes(native.signSchnorr(digest, secret), hexToBytes(answer.schnorr))) return '`signSchnorr`';
  if (!equalBytes(native.recover(expected, digest), publicKey)) return '`recover`';
  const otherDigest = digest.map((byte) => byte ^ 1);
  const doesVerify =
    native.verify(expected.compact, digest, publicKey) &&
    !native.verify(expected.compact, otherDigest, publicKey);
  return doesVerify ? undefined : '`verify`';
}

/** Converts r || s (64 bytes) to DER: SEQUENCE { INTEGER r, INTEGER s }. Source: X.690 8.3, BIP-66. */
export function encodeDerSignature(compact: Uint8Array): Uint8Array {
  const body = concatBytes(derInteger(compact.subarray(0, 32)), derInteger(compact.subarray(32)));
  return concatBytes(Uint8Array.of(0x30, body.length), body);
}

// Encodes an integer in as few bytes as possible, with a leading zero byte if the top bit would make it negative.
function derInteger(bytes: Uint8Array): Uint8Array {
  const firstNonZero = bytes.findIndex((byte) => byte !== 0);
  const minimal = bytes.subarray(firstNonZero === -1 ? bytes.length - 1 : firstNonZero);
  const isNegative = ((minimal[0] ?? 0) & 0x80) !== 0;
  const padded = isNegative ? concatBytes(Uint8Array.of(0), minimal) : minimal;
  return concatBytes(Uint8Array.of(0x02, padded.length), padded);
}
