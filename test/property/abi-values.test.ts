import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { type AbiParameter, bytesToHex, decodeAbiParameters, encodeAbiParameters, hexToBytes } from 'viem';
import { expect, test } from 'vitest';
import {
  AbiEncodingError,
  type AbiValue,
  compileArguments,
} from '../../src/engine/signing/ethereum/abi-values.ts';
import { isLong, seed } from './policy-cases.ts';

const numRuns = isLong ? 500_000 : 2_000;
const TIMEOUT_MS = 60 * 60 * 1000;

type Value = bigint | boolean | string | readonly Value[];

/** A parameter without a name, so that viem represents tuples as arrays, with values for it. */
interface Typed {
  readonly parameter: AbiParameter;
  readonly values: fc.Arbitrary<Value>;
}

const bytesOf = (size: { minLength: number; maxLength: number }) => fc.uint8Array(size).map(bytesToHex);
const named = (type: string, values: fc.Arbitrary<Value>): Typed => ({ parameter: { type }, values });
const bits = fc.integer({ min: 1, max: 32 }).map((bytes) => 8 * bytes);
const edges = (low: bigint, high: bigint) =>
  fc.oneof(fc.bigInt(low, high), fc.constantFrom(low, high, 0n, 1n));

const elementary: fc.Arbitrary<Typed> = fc.oneof(
  fc.constantFrom(
    named('address', bytesOf({ minLength: 20, maxLength: 20 })),
    named('bool', fc.boolean()),
    named('bytes', bytesOf({ minLength: 0, maxLength: 70 })),
    named('string', fc.string({ unit: 'grapheme', maxLength: 40 })),
  ),
  bits.map((size) => named(`uint${size}`, edges(0n, 2n ** BigInt(size) - 1n))),
  bits.map((size) => named(`int${size}`, edges(-(2n ** BigInt(size - 1)), 2n ** BigInt(size - 1) - 1n))),
  fc
    .integer({ min: 1, max: 32 })
    .map((size) => named(`bytes${size}`, bytesOf({ minLength: size, maxLength: size }))),
);

function tupleOf(members: readonly Typed[]): Typed {
  return {
    parameter: { type: 'tuple', components: members.map(({ parameter }) => parameter) },
    values: fc.tuple(...members.map(({ values }) => values)),
  };
}

function arrayOf({ parameter, values }: Typed, length: number | undefined): Typed {
  const size = length === undefined ? { maxLength: 3 } : { minLength: length, maxLength: length };
  return {
    parameter: { ...parameter, type: `${parameter.type}[${length ?? ''}]` },
    values: fc.array(values, size),
  };
}

const { typed } = fc.letrec<{ typed: Typed }>((tie) => ({
  typed: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    elementary,
    fc.array(tie('typed'), { minLength: 1, maxLength: 3 }).map(tupleOf),
    fc
      .tuple(tie('typed'), fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }))
      .map(([element, length]) => arrayOf(element, length)),
  ),
}));

const calls = fc.array(typed, { minLength: 1, maxLength: 4 }).chain((parameters) =>
  fc.record({
    parameters: fc.constant(parameters.map(({ parameter }) => parameter)),
    values: fc.tuple(...parameters.map(({ values }) => values)),
  }),
);

/** A value as policies see it. */
function textOf(value: Value): AbiValue {
  return typeof value === 'object' ? value.map(textOf) : String(value);
}

test(
  'arguments are read as viem encoded them',
  () => {
    fc.assert(
      fc.property(calls, ({ parameters, values }) => {
        const encoded = hexToBytes(encodeAbiParameters(parameters, values));
        expect(compileArguments(parameters)(encoded)).toEqual(values.map(textOf));
      }),
      { seed, numRuns },
    );
  },
  TIMEOUT_MS,
);

type Spoil = (data: Uint8Array) => Uint8Array;
const WORD = 32;
const places = fc.nat({ max: 4096 });
const spoils: fc.Arbitrary<Spoil> = fc.oneof(
  fc.record({ place: places, bit: fc.nat({ max: 7 }) }).map(
    ({ place, bit }): Spoil =>
      (data) =>
        data.map((byte, index) => (index === place % data.length ? byte ^ (1 << bit) : byte)),
  ),
  fc.integer({ min: 1, max: 40 }).map(
    (count): Spoil =>
      (data) =>
        data.slice(0, -count),
  ),
  fc.uint8Array({ minLength: 1, maxLength: 40 }).map(
    (more): Spoil =>
      (data) =>
        Uint8Array.of(...data, ...more),
  ),
  // A different length, offset or value in one place.
  fc.record({ place: places, value: fc.nat({ max: 9 }) }).map(
    ({ place, value }): Spoil =>
      (data) => {
        const words = Math.floor(data.length / WORD);
        const end = WORD * ((place % words) + 1);
        return data.map((byte, index) => {
          if (index < end - WORD || index >= end) return byte;
          return index === end - 1 ? WORD * (value >> 1) + (value & 1) : 0;
        });
      },
  ),
  // A missing or duplicated word, which causes gaps and overlaps.
  fc.record({ place: places, isTwice: fc.boolean() }).map(
    ({ place, isTwice }): Spoil =>
      (data) => {
        const at = WORD * (place % Math.ceil(data.length / WORD));
        return Uint8Array.of(
          ...data.slice(0, at + (isTwice ? WORD : 0)),
          ...data.slice(at + (isTwice ? 0 : WORD)),
        );
      },
  ),
);

/** Text is encoded like bytes. viem drops a byte order mark, so it cannot return the original text. */
function asBytes<T extends AbiParameter>(parameter: T): T {
  const components = (parameter as { components?: readonly AbiParameter[] }).components?.map(asBytes);
  return {
    ...parameter,
    type: parameter.type.replace(/^string/, 'bytes'),
    ...(components && { components }),
  };
}

type Parameter = AbiParameter & { readonly components?: readonly AbiParameter[] };

/** What viem decoded, as policies see it. Throws for bytes that are not valid text. */
function spell(value: Value, { type, components }: Parameter): AbiValue {
  if (typeof value === 'object') {
    const array = /^(.*)\[[0-9]*\]$/.exec(type);
    return value.map((item, index) =>
      spell(item, array ? ({ type: array[1], components } as Parameter) : components![index]!),
    );
  }
  if (type === 'address') return String(value).toLowerCase();
  if (type !== 'string') return String(value);
  const content = hexToBytes(value as `0x${string}`);
  if (!isUtf8(content)) throw new Error('no text');
  return Buffer.from(content).toString('utf8');
}

/** The arguments decoded by viem; undefined unless encoding them yields the same bytes. */
function readByViem(parameters: readonly AbiParameter[], data: Uint8Array): AbiValue | undefined {
  try {
    const plain = parameters.map(asBytes);
    const values = decodeAbiParameters(plain, data) as Value[];
    if (encodeAbiParameters(plain, values) !== bytesToHex(data)) return undefined;
    return spell(values, { type: 'tuple', components: parameters });
  } catch {
    return undefined;
  }
}

function readByUs(parameters: readonly AbiParameter[], data: Uint8Array): AbiValue | undefined {
  try {
    return compileArguments(parameters)(data);
  } catch (error) {
    expect(error).toBeInstanceOf(AbiEncodingError);
    return undefined;
  }
}

test(
  'corrupted bytes are read if and only if viem encodes their values to the same bytes',
  () => {
    const seen = { readable: 0, unreadable: 0 };
    fc.assert(
      fc.property(
        calls,
        fc.array(spoils, { minLength: 1, maxLength: 2 }),
        ({ parameters, values }, changes) => {
          const whole = hexToBytes(encodeAbiParameters(parameters, values));
          const data = changes.reduce((bytes, change) => (bytes.length === 0 ? bytes : change(bytes)), whole);
          const expected = readByViem(parameters, data);
          expect(readByUs(parameters, data)).toEqual(expected);
          seen[expected === undefined ? 'unreadable' : 'readable'] += 1;
        },
      ),
      { seed, numRuns },
    );
    // Otherwise nothing but refusals would have been compared.
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(numRuns / 50);
  },
  TIMEOUT_MS,
);
