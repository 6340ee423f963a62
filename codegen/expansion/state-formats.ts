import { allSchemas, type Document } from '../document.ts';
import { ownFormats } from '../validators/formats.ts';

const patterns: Readonly<Record<string, string>> = {
  cuid2: ownFormats.cuid2.source,
  'user-did': ownFormats['user-did'].source,
};

const MAX_INT32 = 2 ** 31 - 1;

/**
 * Returns the document with additions for tools: the `pattern` of a text whose format only this contract defines, and
 * `int64` for integers that may need more than 32 bits, because generators of some languages assume 32 bits. Validators
 * check the format itself, so that their messages name it.
 */
export function stateFormats(document: Document): Document {
  const stated = structuredClone(document);
  for (const [schema] of allSchemas(stated)) {
    const pattern = patterns[schema['x-format'] ?? ''];
    if (pattern !== undefined) schema.pattern ??= pattern;
    const { maximum = Number.POSITIVE_INFINITY } = schema as { maximum?: number };
    if ([schema.type].flat().includes('integer') && maximum > MAX_INT32) schema.format ??= 'int64';
  }
  return stated;
}
