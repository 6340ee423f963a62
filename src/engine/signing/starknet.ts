import * as stark from '@scure/starknet';
import { Point } from '@scure/starknet';
import { bytesTo0xHex, hexToBytes, utf8ToBytes } from '../crypto/encoding.ts';
import type { ChainSigner } from './chain-signer.ts';
import { InvalidPayloadError } from './signing-errors.ts';

// Pedersen hashes for account addresses. The constant points are the shift point and, for each of the two inputs, a
// point for its low 248 bits and a point for its high 4 bits. Source:
// https://docs.starkware.co/starkex/crypto/pedersen-hash-function.html

type StarkPoint = typeof Point.BASE;

const SHIFT = point(
  2089986280348253421170679821480865132823066470938446095505822317253594081284n,
  1713931329540660377023406109199410414810705867260802078187082345529207694986n,
);
const LEFT = [
  point(
    996781205833008774514500082376783249102396023663454813447423147977397232763n,
    1668503676786377725805489344771023921079126552019160156920634619255970485781n,
  ),
  point(
    2251563274489750535117886426533222435294046428347329203627021249169616184184n,
    1798716007562728905295480679789526322175868328062420237419143593021674992973n,
  ),
] as const;
const RIGHT = [
  point(
    2138414695194151160943305727036575959195309218611738193261179310511854807447n,
    113410276730064486255102093846540133784865286929052426931474106396135072156n,
  ),
  point(
    2379962749567351885752724891227938183011949129833673362440656643086021394946n,
    776496453633298175483985398648758586525933812536653089401905292063708816422n,
  ),
] as const;

const WINDOW_BITS = 4;
const LOW_WINDOWS = 248 / WINDOW_BITS;

/** For each window of an input, the multiples 1 to 15 of the window's point. */
type Table = readonly (readonly StarkPoint[])[];

let tables: { readonly left: Table; readonly right: Table } | undefined;

/**
 * Returns the x-coordinate of shift + x_low * P1 + x_high * P2 + y_low * P3 + y_high * P4. Not constant-time, because
 * the inputs are public.
 *
 * NOTE: the result equals that of `pedersen` in @scure/starknet, which adds bit by bit and compares points before
 * each addition. Tables of four bits take a third of the time, and an address needs seven hashes.
 */
export function pedersen(x: bigint, y: bigint): bigint {
  tables ??= { left: tableOf(...LEFT), right: tableOf(...RIGHT) };
  return add(add(SHIFT, x, tables.left), y, tables.right).toAffine().x;
}

/** Returns h(h(h(start, e0), e1), ...). */
export function pedersenFold(elements: readonly bigint[], start = 0n): bigint {
  return elements.reduce(pedersen, start);
}

function point(x: bigint, y: bigint): StarkPoint {
  return Point.fromAffine({ x, y });
}

/** Builds the table of one input. It takes 3 ms and has 900 points. */
function tableOf(low: StarkPoint, high: StarkPoint): Table {
  const table: StarkPoint[][] = [];
  let base = low;
  for (let window = 0; window < LOW_WINDOWS; window += 1) {
    table.push(multiplesOf(base));
    for (let bit = 0; bit < WINDOW_BITS; bit += 1) base = base.double();
  }
  return [...table, multiplesOf(high)];
}

function multiplesOf(base: StarkPoint): StarkPoint[] {
  const multiples = [base];
  for (let n = 2; n < 1 << WINDOW_BITS; n += 1) multiples.push((multiples[n - 2] as StarkPoint).add(base));
  return multiples;
}

function add(start: StarkPoint, value: bigint, table: Table): StarkPoint {
  if (value < 0n || value >= Point.Fp.ORDER) throw new RangeError('expected an element of the field');
  let sum = start;
  // Splits the number into digits, one per window, highest first.
  const digits = value.toString(1 << WINDOW_BITS).padStart(table.length, '0');
  for (const [window, multiples] of table.entries()) {
    const digit = Number.parseInt(digits[table.length - 1 - window] as string, 1 << WINDOW_BITS);
    if (digit > 0) sum = sum.add(multiples[digit - 1] as StarkPoint);
  }
  return sum;
}

// Addresses are below 2^251 - 256; signed hashes below 2^251.
const ADDRESS_BOUND = 2n ** 251n - 256n;
const HASH_BOUND = 2n ** 251n;
const CONTRACT_ADDRESS_PREFIX = BigInt(bytesTo0xHex(utf8ToBytes('STARKNET_CONTRACT_ADDRESS')));

// The account contracts, with the constructor arguments for a key.
const ACCOUNT_CLASSES = {
  // Ready (Argent) v0.4.0: a Starknet signer owner, no guardian
  ready: {
    classHash: 0x036078334509b514626504edc9fb252328d1a240e4e948bef8d0c08dff45927fn,
    calldata: (key: bigint) => [0n, key, 1n],
  },
  // OpenZeppelin account v0.17
  openzeppelin: {
    classHash: 0x540d7f5ec7ecf317e68d48564934cb99259781b1ee3cedbbc37ec5337f8e688n,
    calldata: (key: bigint) => [key],
  },
} as const;

export type StarknetAccountClass = keyof typeof ACCOUNT_CLASSES;

/**
 * Signs for Starknet accounts. The payload is a transaction hash (a felt below 2^251), the signature r || s. Source:
 * Starknet docs, contract address and signatures.
 */
export const starknetSigner: ChainSigner = {
  // CHOICE: Ready by default, because the published client types do not say to which account class `address` belongs.
  walletKeys(secret, { starknetAccountClass = 'ready' }) {
    const key = BigInt(stark.getStarkKey(secret));
    return {
      address: feltHex(starknetAddress(key, starknetAccountClass)),
      publicKey: feltHex(key),
    };
  },
  signPayload(secret, payload) {
    const isFelt = payload.length >= 1 && payload.length <= 32;
    if (!isFelt || BigInt(bytesTo0xHex(payload)) >= HASH_BOUND) {
      throw new InvalidPayloadError('/hash', 'expected a felt below 2^251');
    }
    const digest = new Uint8Array(32);
    digest.set(payload, 32 - payload.length);
    return stark.sign(digest, secret).toBytes('compact');
  },
};

/** Returns the address that the account contract gets if it is deployed for this key with salt = key and deployer 0. */
export function starknetAddress(key: bigint, accountClass: StarknetAccountClass): bigint {
  const { classHash, calldata } = ACCOUNT_CLASSES[accountClass];
  const callHash = pedersenChain(calldata(key));
  // The Pedersen chain over [prefix, deployer, salt, class hash, callHash]. The hash of the first two elements is
  // computed once, because they are always the same.
  hashOfPrefix ??= pedersenFold([CONTRACT_ADDRESS_PREFIX, 0n]);
  return pedersenFold([key, classHash, callHash, 5n], hashOfPrefix) % ADDRESS_BOUND;
}

let hashOfPrefix: bigint | undefined;

// Returns h(h(h(0, e0), e1) ..., length).
function pedersenChain(elements: readonly bigint[]): bigint {
  return pedersen(pedersenFold(elements), BigInt(elements.length));
}

/** Derives a uniformly distributed Stark secret from 32 bytes of key material. Source: EIP-2645, key grinding. */
export function grindStarkSecret(material: Uint8Array): Uint8Array {
  return hexToBytes(stark.grindKey(material).padStart(64, '0'));
}

/** Returns whether the bytes are a 32-byte non-zero scalar of the Stark curve. */
export function isStarkSecret(secret: Uint8Array): boolean {
  return secret.length === 32 && stark.utils.isValidPrivateKey(secret);
}

function feltHex(felt: bigint): string {
  return `0x${felt.toString(16)}`;
}
