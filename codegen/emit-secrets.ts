import { type Document, header, resolveSchema, type Schema } from './document.ts';
import type { Operation } from './read-operations.ts';

/**
 * Returns the names of the properties marked `x-secret` in a schema and its subschemas. It does not search inside of
 * secret properties.
 */
function secretsIn(document: Document, schema: Schema, seen = new Set<Schema>()): string[] {
  const target = resolveSchema(document, schema);
  if (seen.has(target)) return [];
  seen.add(target);
  const extra = target.additionalProperties;
  const inner = [
    ...(target.oneOf ?? []),
    ...(target.anyOf ?? []),
    ...(target.items === undefined ? [] : [target.items]),
    ...(typeof extra === 'object' ? [extra] : []),
  ];
  return [
    ...Object.entries(target.properties ?? {}).flatMap(([name, property]) =>
      property['x-secret'] === true ? [name] : secretsIn(document, property, seen),
    ),
    ...inner.flatMap((each) => secretsIn(document, each, seen)),
  ];
}

function names(document: Document, schema: Schema | undefined): string {
  return JSON.stringify(schema === undefined ? [] : [...new Set(secretsIn(document, schema))].sort());
}

/** Emits `secrets.ts`: the names of the secret properties of each operation that has any. */
export function emitSecrets(document: Document, operations: readonly Operation[]): string {
  const entries = operations.flatMap(({ id, body, success }) => {
    const [request, response] = [names(document, body?.schema), names(document, success)];
    return request === '[]' && response === '[]'
      ? []
      : [`  ${id}: { request: ${request}, response: ${response} },\n`];
  });
  return [
    `${header(document)}\n`,
    '/** The properties marked `x-secret` in the bodies of each operation that has any. */\n',
    'export const secretProperties: Readonly<\n',
    '  Record<string, { readonly request: readonly string[]; readonly response: readonly string[] }>\n',
    '> = {\n',
    ...entries,
    '};\n',
  ].join('');
}
