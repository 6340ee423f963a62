/** A body that is made to keep a server busy. */
export interface WorstBody {
  readonly what: string;
  /** Written when it is needed: most are a megabyte. */
  readonly write: () => string;
}

// Just below the limit of 1 MiB.
const LENGTH = 1_000_000;

const strings: Readonly<Record<string, (room: number) => unknown>> = {
  letters: (room) => 'a'.repeat(room),
  digits: (room) => '1'.repeat(room),
  hex: (room) => `0x${'ff'.repeat(room / 2)}`,
  'bare hex': (room) => 'F9EA'.repeat(room / 4),
  base64: (room) => `${'AQAB'.repeat(room / 4)}`,
  escapes: (room) => '\u0001'.repeat(room / 6),
  'half the size, hex': (room) => `0x${'01'.repeat(room / 4)}`,
  '16 KB of hex': () => `0x${'c0'.repeat(8000)}`,
  '16 KB of base64': () => 'AQAB'.repeat(4000),
};

const anything: Readonly<Record<string, (room: number) => unknown>> = {
  'nested lists': (room) => new Raw(`${'['.repeat(room / 2)}${']'.repeat(room / 2)}`),
  'nested objects': (room) => new Raw(`${'{"a":'.repeat(room / 6)}1${'}'.repeat(room / 6)}`),
  members: (room) => Object.fromEntries(Array.from({ length: room / 12 }, (_, index) => [`k${index}`, 1])),
  digits: (room) => new Raw('9'.repeat(room)),
  numbers: (room) => Array.from({ length: room / 2 }, () => 1),
  'empty objects': (room) => Array.from({ length: room / 3 }, () => ({})),
};

/** JSON text in place of a value, for what `JSON.stringify` does not write. */
class Raw {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Every value of an example in turn replaced by long, wide and deep ones, and every list by longer ones. */
export function* worstBodies(example: unknown): Generator<WorstBody> {
  for (const [path, value] of placesOf(example, [])) {
    const room = LENGTH - JSON.stringify(example).length - 100;
    const where = path.length === 0 ? 'the body' : path.join('.');
    const isLeaf = typeof value !== 'object';
    const makers = typeof value === 'string' ? strings : isLeaf ? { digits: anything.digits! } : anything;
    const variants: [string, () => unknown][] = Object.entries(makers).map(([what, make]) => [
      what,
      () => make(room),
    ]);
    if (Array.isArray(value) && value.length > 0) {
      const size = JSON.stringify(value[0]).length + 1;
      for (const count of [35, 100, 200, Math.floor(room / size)]) {
        if (count * size > room) continue;
        variants.push([`${count} items`, () => Array.from({ length: count }, () => value[0])]);
      }
    }
    if (isObject(value)) variants.push(['more members', () => ({ ...value, ...manyMembers() })]);
    for (const [what, make] of variants) {
      yield { what: `${where}: ${what}`, write: () => write(example, path, make()) };
    }
  }
}

function manyMembers(): object {
  return Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, 1]));
}

type Path = readonly (string | number)[];

function* placesOf(value: unknown, path: Path): Generator<[Path, unknown]> {
  yield [path, value];
  if (Array.isArray(value)) {
    if (value.length > 0) yield* placesOf(value[0], [...path, 0]);
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) yield* placesOf(member, [...path, name]);
  }
}

function write(example: unknown, path: Path, variant: unknown): string {
  const mark = '<here>';
  const text = JSON.stringify(replace(example, path, mark));
  return text.replace(`"${mark}"`, () => (variant instanceof Raw ? variant.text : JSON.stringify(variant)));
}

function replace(value: unknown, [step, ...rest]: Path, variant: unknown): unknown {
  if (step === undefined) return variant;
  if (Array.isArray(value))
    return value.map((item, index) => (index === step ? replace(item, rest, variant) : item));
  const members = value as Record<string, unknown>;
  return { ...members, [step]: replace(members[step], rest, variant) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
