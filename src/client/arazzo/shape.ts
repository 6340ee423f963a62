/** Reports what is wrong with a value; `at` is its JSON pointer. */
export type Check = (value: unknown, at: string, report: (fault: string) => void) => void;

interface Fields {
  readonly required: Readonly<Record<string, Check>>;
  readonly optional?: Readonly<Record<string, Check>>;
}

export const any: Check = () => undefined;

export const text: Check = (value, at, report) => {
  if (typeof value !== 'string' || value === '') report(`${at}: expected text, got ${shown(value)}`);
};

export const count: Check = (value, at, report) => {
  if (typeof value !== 'number' || !(value >= 0))
    report(`${at}: expected a number from 0, got ${shown(value)}`);
};

export function oneOf(...allowed: readonly string[]): Check {
  return (value, at, report) => {
    if (!allowed.includes(value as string))
      report(`${at}: expected ${allowed.join(' or ')}, got ${shown(value)}`);
  };
}

export function list(item: Check, atLeast = 0): Check {
  return (value, at, report) => {
    if (!Array.isArray(value)) return report(`${at}: expected a list, got ${shown(value)}`);
    if (value.length < atLeast) report(`${at}: expected at least ${atLeast}, got ${value.length}`);
    for (const [index, each] of value.entries()) item(each, `${at}/${index}`, report);
  };
}

export function mapOf(item: Check): Check {
  return (value, at, report) => {
    if (!isObject(value)) return report(`${at}: expected an object, got ${shown(value)}`);
    for (const [name, each] of Object.entries(value)) item(each, `${at}/${name}`, report);
  };
}

/** An object with these fields, and extensions, whose names begin with `x-`. */
export function object({ required, optional = {} }: Fields): Check {
  return (value, at, report) => {
    if (!isObject(value)) return report(`${at === '' ? '/' : at}: expected an object, got ${shown(value)}`);
    for (const name of Object.keys(required))
      if (value[name] === undefined) report(`${at}/${name}: is required`);
    for (const [name, each] of Object.entries(value)) {
      const check = required[name] ?? optional[name];
      if (check !== undefined) check(each, `${at}/${name}`, report);
      else if (!name.startsWith('x-')) report(`${at}/${name}: unknown field`);
    }
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : `\`${JSON.stringify(value).slice(0, 60)}\``;
}
