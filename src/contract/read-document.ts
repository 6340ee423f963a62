import { readFileSync } from 'node:fs';
import { UnmeasurableError } from '../start-error.ts';
import type { ContractDocument } from './contract-document.ts';

/**
 * Reads an OpenAPI 3 document from a JSON or YAML file.
 *
 * @throws UnmeasurableError if it cannot be read, is something else, or refers to other files.
 */
export async function readContract(file: string): Promise<ContractDocument> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UnmeasurableError(`\`${file}\` cannot be read: ${(cause as Error).message}`, { cause });
  }
  const document = await parse(text, file);
  const { openapi } = (document ?? {}) as { openapi?: unknown };
  if (!/^3\./.test(String(openapi))) {
    throw new UnmeasurableError(`\`${file}\`: expected an OpenAPI 3 document, got \`openapi: ${openapi}\``);
  }
  const foreign = foreignReference(document);
  if (foreign !== undefined) {
    throw new UnmeasurableError(
      `\`${file}\`: expected one document, got a reference to \`${foreign}\`; bundle it first`,
    );
  }
  const contract = document as ContractDocument;
  return { ...contract, paths: contract.paths ?? {} };
}

async function parse(text: string, file: string): Promise<unknown> {
  try {
    if (text.trimStart().startsWith('{')) return JSON.parse(text);
    const { parse: parseYaml } = await import('yaml');
    // Anchors that repeat a text without end are refused.
    return parseYaml(text, { maxAliasCount: 1000 });
  } catch (cause) {
    throw new UnmeasurableError(`\`${file}\`: expected JSON or YAML: ${(cause as Error).message}`, { cause });
  }
}

/** A reference to another file or place on the network. */
function foreignReference(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  const { $ref: reference } = node as { $ref?: unknown };
  if (typeof reference === 'string' && !reference.startsWith('#')) return reference;
  for (const inner of Object.values(node)) {
    const found = foreignReference(inner);
    if (found !== undefined) return found;
  }
  return undefined;
}
