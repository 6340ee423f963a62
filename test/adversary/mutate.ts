import type { Random } from '../simulation/random.ts';

/** Strings that have broken parsers, by what they try. */
const hostileStrings: readonly string[] = [
  '',
  ' '.repeat(2_000),
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\u202e\u2066',
  '/'.repeat(3_000),
  `-----BEGIN PUBLIC KEY-----${' '.repeat(2_000)}x`,
  '9'.repeat(400),
  '-1',
  '1e309',
  '0x',
  `0x${'f'.repeat(65)}`,
  '../../../../etc/passwd',
  "'; drop table wallets; --",
  '%24%7B7*7%7D',
  '__proto__',
  'constructor',
  '\r\nset-cookie: a=b',
  'é́'.repeat(500),
  '🦊'.repeat(300),
];

const hostileValues: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  2 ** 53,
  0.1,
  [],
  {},
  [[]],
  { __proto__: null },
  Array.from({ length: 300 }, () => ({})),
];

/** A value like the one given, of which one place is hostile. */
export function mutate(value: unknown, random: Random): unknown {
  const isLeaf = typeof value !== 'object' || value === null || Object.keys(value).length === 0;
  if (isLeaf || random.chance(0.15)) return hostile(random);
  const name = random.pick(Object.keys(value));
  if (Array.isArray(value)) {
    const at = Number(name);
    if (random.chance(0.2)) return value.flatMap((each) => Array.from({ length: 20 }, () => each));
    return value.with(at, mutate(value[at], random));
  }
  const inner = (value as Record<string, unknown>)[name];
  const { [name]: _left, ...others } = value as Record<string, unknown>;
  if (random.chance(0.1)) return others;
  if (random.chance(0.1)) return { ...value, [random.pick(hostileStrings)]: inner };
  if (random.chance(0.05)) return { ...others, [name]: nested(inner, 200) };
  return { ...value, [name]: mutate(inner, random) };
}

function hostile(random: Random): unknown {
  return random.chance(0.6) ? random.pick(hostileStrings) : random.pick(hostileValues);
}

function nested(value: unknown, depth: number): unknown {
  let outer = value;
  for (let level = 0; level < depth; level += 1) outer = [outer];
  return outer;
}

/** The bytes with a few of them flipped, cut, doubled or put elsewhere. */
export function mutateBytes(bytes: Uint8Array, random: Random): Buffer {
  const changed = Buffer.from(bytes);
  if (changed.length === 0) return changed;
  const at = random.below(changed.length);
  switch (random.below(5)) {
    case 0:
      changed[at] = random.below(256);
      return changed;
    case 1:
      return changed.subarray(0, at);
    case 2:
      return Buffer.concat([changed, changed.subarray(at)]);
    case 3:
      return Buffer.concat([
        changed.subarray(0, at),
        Buffer.alloc(random.below(4_096), 0xff),
        changed.subarray(at),
      ]);
    default:
      changed.fill(random.below(256), at, Math.min(changed.length, at + random.between(1, 8)));
      return changed;
  }
}

/** JSON in which the first member of the outermost object stands twice, the second time with another value. */
export function withMemberTwice(body: object): string {
  const text = JSON.stringify(body);
  const [name] = Object.keys(body);
  return name === undefined ? text : `${text.slice(0, -1)},${JSON.stringify(name)}:"twice"}`;
}
