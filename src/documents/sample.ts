import { locate, type OpenApiDocument } from './open-api.ts';

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly minLength?: number;
  readonly minItems?: number;
  readonly items?: unknown;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly allOf?: readonly unknown[];
  readonly oneOf?: readonly unknown[];
  readonly anyOf?: readonly unknown[];
}

const MAX_DEPTH = 12;

const texts: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T00:00:00Z',
  time: '00:00:00Z',
  duration: 'P1D',
  email: 'alice@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
};

/** A value for a schema without an example, as far as one follows from it: patterns and conditions are not read. */
export function sampleOf(document: OpenApiDocument, pointer: string, depth = 0): unknown {
  const found = locate<Schema | boolean>(document, pointer);
  if (found === undefined || typeof found.node !== 'object' || depth > MAX_DEPTH) return null;
  const { node: schema, pointer: at } = found;
  const [given] = [
    schema.const,
    schema.example,
    schema.examples?.[0],
    schema.default,
    schema.enum?.[0],
  ].filter((value) => value !== undefined);
  if (given !== undefined) return given;
  const inner = (...steps: string[]): unknown => sampleOf(document, [at, ...steps].join('/'), depth + 1);
  if (schema.oneOf !== undefined) return inner('oneOf', '0');
  if (schema.anyOf !== undefined) return inner('anyOf', '0');
  const [type] = [schema.type].flat();
  if (schema.allOf !== undefined || schema.properties !== undefined || type === 'object') {
    const parts = (schema.allOf ?? []).map((_, index) => inner('allOf', String(index)));
    const own = Object.keys(schema.properties ?? {}).map((name) => [
      name,
      inner('properties', name.replaceAll('~', '~0').replaceAll('/', '~1')),
    ]);
    return Object.assign({}, ...parts, Object.fromEntries(own));
  }
  if (type === 'array') {
    const item = schema.items === undefined ? null : inner('items');
    return Array.from({ length: Math.min(schema.minItems ?? 1, 100) }, () => item);
  }
  return scalarOf(schema, type);
}

function scalarOf({ format = '', minLength = 0, minimum = 0 }: Schema, type: string | undefined): unknown {
  if (type === 'string') return texts[format] ?? 'text'.padEnd(Math.min(minLength, 10_000), '.');
  if (type === 'integer' || type === 'number') return Math.max(0, Math.ceil(minimum));
  if (type === 'boolean') return true;
  return null;
}
