import { expect, test } from 'vitest';
import openapi from '../../openapi/openapi.json' with { type: 'json' };

// Generators of clients name what has no name by its position: `Quantity1`, `any_of_1`, `DisabledReasonType2Type1`.

interface Schema {
  readonly $ref?: string;
  readonly title?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Every object below a value, with its JSON pointer. */
function* objectsIn(value: unknown, pointer = ''): Generator<[string, Schema]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [pointer, value];
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${pointer}/${name}`);
}

// Examples and the values of enums are data.
const all = [...objectsIn(openapi)].filter(([pointer]) => !/\/(examples?|enum)\//.test(pointer));
const members = all.flatMap(([pointer, { anyOf = [], oneOf = [] }]) =>
  [...anyOf, ...oneOf]
    .filter((member) => member.$ref === undefined && member.type !== 'null')
    .map((member) => ({ pointer, title: member.title })),
);

test('the members of a union are references or have titles', () => {
  expect(members.filter(({ title }) => title === undefined)).toEqual([]);
});

test('titles of members and names of schemas are unique, also without case', () => {
  const names = [...members.map(({ title }) => title ?? ''), ...Object.keys(openapi.components.schemas)];
  const seen = new Set<string>();
  const again = names.filter((name) => seen.size === seen.add(name.toLowerCase()).size);
  expect(again).toEqual([]);
});

test('enums that can be null are a reference or null', () => {
  const nullable = all.filter(([, schema]) => Array.isArray(schema.enum) && schema.enum.includes(null));
  expect(nullable.map(([pointer]) => pointer)).toEqual([]);
});

test('operations have unique names that are words', () => {
  const ids = all.flatMap(([pointer, schema]) =>
    'operationId' in schema && !pointer.includes('/links/') ? [String(schema.operationId)] : [],
  );
  expect(new Set(ids.map((id) => id.toLowerCase())).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z]+(?:[A-Z][A-Za-z]*)*$/.test(id))).toEqual([]);
});
