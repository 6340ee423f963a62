import { type Document, header, type Schema, schemaName } from './document.ts';

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** Converts a component's name to a TypeScript identifier. */
function typeName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_$]/g, '_');
}

export function propertyKey(name: string): string {
  return IDENTIFIER.test(name) ? name : JSON.stringify(name);
}

/** Returns a doc comment with the given indentation, or an empty string if there is no description. */
export function docComment(text: string | undefined, indent: string): string {
  if (text === undefined || text.trim() === '' || text.trim() === 'TODO') return '';
  const lines = text.trim().replaceAll('*/', '*\\/').split('\n');
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */\n`;
}

function union(members: readonly string[]): string {
  return [...new Set(members)].join(' | ') || 'never';
}

/** Parenthesizes a union so that `[]` can follow. */
function element(type: string): string {
  return /[|&]/.test(type) ? `(${type})` : type;
}

function objectType(schema: Schema, indent: string, prefix: string): string {
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const type = tsType(property, inner, prefix);
    // Optional properties also accept `undefined`, which JSON omits, so that views need no conditional spreads.
    const [mark, orUndefined] = required.has(name) ? ['', ''] : ['?', ' | undefined'];
    return `${docComment(property.description, inner)}${inner}${propertyKey(name)}${mark}: ${type}${orUndefined};\n`;
  });
  const extra = schema.additionalProperties;
  if (lines.length === 0) {
    if (extra === false) return 'Record<string, never>';
    if (typeof extra === 'object') return `{ [key: string]: ${tsType(extra, indent, prefix)} }`;
    return '{ [key: string]: unknown }';
  }
  if (extra === true || typeof extra === 'object') lines.push(`${inner}[key: string]: unknown;\n`);
  return `{\n${lines.join('')}${indent}}`;
}

function typeOfKind(kind: string, schema: Schema, indent: string, prefix: string): string {
  switch (kind) {
    case 'string': {
      const known = schema['x-known-values'];
      if (known === undefined) return 'string';
      return union([...known.map((value) => JSON.stringify(value)), '(string & {})']);
    }
    case 'number':
    case 'integer':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array':
      return `${element(schema.items === undefined ? 'unknown' : tsType(schema.items, indent, prefix))}[]`;
    default:
      return objectType(schema, indent, prefix);
  }
}

/**
 * Returns the TypeScript type of a schema.
 *
 * @param indent the indentation of its first line.
 * @param prefix prepended to the names of components, e.g. `schemas.`.
 */
export function tsType(schema: Schema, indent = '', prefix = ''): string {
  if (schema.$ref !== undefined) return `${prefix}${typeName(schemaName(schema.$ref))}`;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  const branches = schema.oneOf ?? schema.anyOf;
  if (branches !== undefined) return union(branches.map((branch) => tsType(branch, indent, prefix)));
  if (schema.type === undefined && schema.properties !== undefined) return objectType(schema, indent, prefix);
  if (schema.type === undefined) return 'unknown';
  const kinds = Array.isArray(schema.type) ? schema.type : [schema.type];
  return union(kinds.map((kind) => typeOfKind(kind, schema, indent, prefix)));
}

/** Emits `schemas.ts`: a named type for every component. */
export function emitSchemas(document: Document): string {
  const types = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      `${docComment(schema.description, '')}export type ${typeName(name)} = ${tsType(schema)};\n`,
  );
  return `${header(document)}\n${types.join('\n')}`;
}
