import { allSchemas, type Document } from '../document.ts';
import { ownFormats } from '../validators/formats.ts';

const patterns: Readonly<Record<string, string>> = {
  cuid2: ownFormats.cuid2.source,
  'user-did': ownFormats['user-did'].source,
};

/**
 * Returns the document with the `pattern` of each text of a format that only this contract defines, for tools that do
 * not know the format. Validators check the format itself, so that their messages name it.
 */
export function stateFormats(document: Document): Document {
  const stated = structuredClone(document);
  for (const [schema] of allSchemas(stated)) {
    const pattern = patterns[schema['x-format'] ?? ''];
    if (pattern !== undefined) schema.pattern ??= pattern;
  }
  return stated;
}
