import { bls12_381 } from '@noble/curves/bls12-381.js';
import { bn254 } from '@noble/curves/bn254.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { concat, type Hex, numberToHex, pad, sha256, size, slice, toHex } from 'viem';
import type { Random } from '../../simulation/random.ts';
import { bytesOf } from './programs.ts';

// Inputs of the precompiled contracts of Osaka: valid ones, and valid ones with a changed or missing byte.

interface PrecompileInput {
  readonly address: number;
  readonly input: Hex;
}

const word = (value: bigint): Hex => numberToHex(value, { size: 32 });
const hash = (random: Random): Uint8Array => Buffer.from(bytesOf(random, 32).slice(2), 'hex');
const scalar = (random: Random): bigint => BigInt(random.between(1, 2 ** 31)) ** 3n;

function recovery(random: Random): Hex {
  const digest = hash(random);
  const signature = secp256k1.sign(digest, hash(random), {
    prehash: false,
    format: 'recovered',
    lowS: random.chance(0.5),
  });
  const v = BigInt(27 + signature[0]!);
  return concat([toHex(digest), word(random.chance(0.9) ? v : v + 2n), toHex(signature.slice(1))]);
}

function power(random: Random): Hex {
  const lengths = [0, 1, 2].map(() =>
    random.weighted([
      [5, random.below(40)],
      [1, 0],
      [0.5, 1_024],
      [0.2, 1_025],
    ]),
  );
  const numbers = lengths.map((length) => bytesOf(random, Math.min(length, 200)));
  return concat([...lengths.map((length) => word(BigInt(length))), ...numbers]);
}

const bnPoint = (random: Random): Hex => {
  if (random.chance(0.1)) return concat([word(0n), word(0n)]);
  const { x, y } = bn254.G1.Point.BASE.multiply(scalar(random)).toAffine();
  return concat([word(x), word(y)]);
};

/** e(a · P, b · Q) · e(-ab · P, Q), which is one; or without the second half. */
function bnPairs(random: Random): Hex {
  const [a, b] = [BigInt(random.between(1, 1_000)), BigInt(random.between(1, 1_000))];
  const pair = (one: bigint, other: bigint): Hex => {
    const [p, q] = [
      bn254.G1.Point.BASE.multiply(one).toAffine(),
      bn254.G2.Point.BASE.multiply(other).toAffine(),
    ];
    return concat([p.x, p.y, q.x.c1, q.x.c0, q.y.c1, q.y.c0].map(word));
  };
  const second = pair(bn254.fields.Fr.ORDER - a * b, 1n);
  return random.pick(['0x', pair(a, b), concat([pair(a, b), second])] as const);
}

function blake(random: Random): Hex {
  const rounds = numberToHex(
    random.weighted([
      [5, random.below(20)],
      [1, 1_000],
    ]),
    { size: 4 },
  );
  return concat([rounds, bytesOf(random, 208), numberToHex(random.pick([0, 1, 1, 2]), { size: 1 })]);
}

/** The commitment to the polynomial 0, which is 0 everywhere, and its proof: both are the point at infinity. */
function blobProof(random: Random): Hex {
  const infinity = pad('0xc0', { dir: 'right', size: 48 });
  const versioned = concat(['0x01', slice(sha256(infinity), 1)]);
  const value = random.chance(0.8) ? 0n : 1n;
  return concat([versioned, pad(bytesOf(random, 31), { size: 32 }), word(value), infinity, infinity]);
}

const field = (value: bigint): Hex => numberToHex(value, { size: 64 });

function g1(random: Random): Hex {
  if (random.chance(0.1)) return concat([field(0n), field(0n)]);
  const { x, y } = bls12_381.G1.Point.BASE.multiply(scalar(random)).toAffine();
  return concat([field(x), field(y)]);
}

function g2(random: Random): Hex {
  if (random.chance(0.1)) return concat([0n, 0n, 0n, 0n].map(field));
  const { x, y } = bls12_381.G2.Point.BASE.multiply(scalar(random)).toAffine();
  return concat([x.c0, x.c1, y.c0, y.c1].map(field));
}

const withScalars = (random: Random, point: (random: Random) => Hex): Hex =>
  concat(Array.from({ length: random.between(1, 2) }, () => concat([point(random), bytesOf(random, 32)])));

function blsPairs(random: Random): Hex {
  const a = BigInt(random.between(1, 1_000));
  const pair = (one: bigint, other: bigint): Hex => {
    const [p, q] = [
      bls12_381.G1.Point.BASE.multiply(one).toAffine(),
      bls12_381.G2.Point.BASE.multiply(other).toAffine(),
    ];
    return concat([p.x, p.y, q.x.c0, q.x.c1, q.y.c0, q.y.c1].map(field));
  };
  const second = pair(bls12_381.fields.Fr.ORDER - a, 1n);
  return random.pick([pair(1n, a), concat([pair(1n, a), second])] as const);
}

const fieldElement = (random: Random): Hex => pad(bytesOf(random, 47), { size: 64 });

function p256Verification(random: Random): Hex {
  const [key, digest] = [hash(random), hash(random)];
  const signature = p256.sign(digest, key, { prehash: false, lowS: false });
  const publicKey = p256.getPublicKey(key, false).slice(1);
  return concat([toHex(digest), toHex(signature), toHex(publicKey)]);
}

const inputs: readonly (readonly [weight: number, address: number, input: (random: Random) => Hex])[] = [
  [3, 0x01, recovery],
  [3, 0x02, (random) => bytesOf(random, random.below(100))],
  [3, 0x03, (random) => bytesOf(random, random.below(100))],
  [3, 0x04, (random) => bytesOf(random, random.below(100))],
  [3, 0x05, power],
  [3, 0x06, (random) => concat([bnPoint(random), bnPoint(random)])],
  [3, 0x07, (random) => concat([bnPoint(random), bytesOf(random, 32)])],
  [0.7, 0x08, bnPairs],
  [3, 0x09, blake],
  [1, 0x0a, blobProof],
  [1.5, 0x0b, (random) => concat([g1(random), g1(random)])],
  [1, 0x0c, (random) => withScalars(random, g1)],
  [1, 0x0d, (random) => concat([g2(random), g2(random)])],
  [0.7, 0x0e, (random) => withScalars(random, g2)],
  [0.4, 0x0f, blsPairs],
  [1, 0x10, fieldElement],
  [0.7, 0x11, (random) => concat([fieldElement(random), fieldElement(random)])],
  [1, 0x100, p256Verification],
];

/** A precompiled contract and an input for it, mostly a valid one. */
export function precompileInput(random: Random): PrecompileInput {
  const [, address, make] = random.weighted(inputs.map((each) => [each[0], each] as const));
  const valid = make(random);
  if (random.chance(0.8) || size(valid) === 0) return { address, input: valid };
  const bytes = Buffer.from(valid.slice(2), 'hex');
  bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
  const changed: Hex = `0x${bytes.toString('hex')}`;
  return { address, input: random.chance(0.3) ? slice(changed, 0, Math.max(bytes.length - 1, 1)) : changed };
}
