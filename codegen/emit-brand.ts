import { allParameters, allSchemas, type Document, header, resolveSchema, type Schema } from './document.ts';

/** The branded values of one property. */
interface BrandedUse {
  readonly literals: string[];
  readonly dids: boolean;
}

const BRAND_WORD = 'service';
const DID_FORMAT = 'user-did';

/** Collects the strings of a property through references, unions and arrays, but not in nested objects. */
function brandedUse(document: Document, schema: Schema): BrandedUse {
  const target = resolveSchema(document, schema);
  const branches = [
    ...(target.oneOf ?? []),
    ...(target.anyOf ?? []),
    ...(target.items ? [target.items] : []),
  ];
  const below = branches.map((branch) => brandedUse(document, branch));
  const branded = schema['x-branded'] === true || target['x-branded'] === true;
  const listed = [target.const, ...(target.enum ?? []), ...(target['x-known-values'] ?? [])].filter(
    (value): value is string => typeof value === 'string',
  );
  const isDid = target['x-format'] === DID_FORMAT || (branded && listed.length === 0);
  const own = branded ? listed.filter((value) => value.includes(BRAND_WORD)) : [];
  return {
    literals: [...own, ...below.flatMap(({ literals }) => literals)],
    dids: isDid || below.some(({ dids }) => dids),
  };
}

function list(values: Iterable<string>, indent = ''): string {
  const items = [...new Set(values)].sort();
  if (items.length === 0) return '[]';
  return `[\n${items.map((item) => `${indent}  ${JSON.stringify(item)},\n`).join('')}${indent}]`;
}

/**
 * Emits `brand.ts`: the places in messages that contain the neutral brand word. They are needed to replace it by the
 * configured prefix.
 */
export function emitBrand(
  document: Document,
  brandedProperties: readonly string[],
  errorCodes: readonly string[],
): string {
  const literals = new Map<string, string[]>();
  const dids = new Set<string>();
  const brandedCodes = errorCodes.filter((code) => code.includes(BRAND_WORD));
  if (brandedCodes.length > 0) literals.set('code', brandedCodes);
  const note = (name: string, schema: Schema): void => {
    const use = brandedUse(document, schema);
    if (use.literals.length > 0) literals.set(name, [...(literals.get(name) ?? []), ...use.literals]);
    if (use.dids) dids.add(name);
  };
  for (const [schema] of allSchemas(document)) {
    for (const [name, property] of Object.entries(schema.properties ?? {})) note(name, property);
  }
  for (const [parameter] of allParameters(document)) {
    if (parameter.schema !== undefined) note(parameter.name, parameter.schema);
  }
  const values = [...literals].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${header(document)}\n`,
    '/** Wire names of properties that contain the neutral brand word. */\n',
    `export const brandedProperties: readonly string[] = ${list(brandedProperties)};\n\n`,
    '/** Property name -> its literal values that contain the neutral brand word. */\n',
    'export const brandedValues: Readonly<Record<string, readonly string[]>> = {\n',
    ...values.map(([name, words]) => `  ${JSON.stringify(name)}: ${list(words, '  ')},\n`),
    '};\n\n',
    '/** Names of properties whose strings are user DIDs, including arrays of strings. */\n',
    `export const didProperties: readonly string[] = ${list(dids)};\n`,
  ].join('');
}
