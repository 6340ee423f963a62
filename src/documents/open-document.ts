import { cachedCompilation } from './cache.ts';
import { compileDocument } from './compile-document.ts';
import { indexOperations, type OperationIndex } from './find-operation.ts';
import { loadDocument } from './load-document.ts';
import { loadValidators, type Validators } from './load-validators.ts';
import type { OpenApiDocument } from './open-api.ts';
import { type DocumentOperation, readOperations } from './read-operations.ts';

/** An OpenAPI document that is ready to answer and to judge requests. */
export interface OpenedDocument {
  readonly document: OpenApiDocument;
  readonly operations: readonly DocumentOperation[];
  readonly index: OperationIndex;
  readonly parameters: Validators;
  readonly bodies: Validators;
  /** Whether the validators of an earlier start were used. */
  readonly isFromCache: boolean;
}

/**
 * Reads a document and compiles its validators.
 *
 * @throws UnmeasurableError
 */
export async function openDocument(
  file: string,
  { cacheFolder }: { readonly cacheFolder: string | undefined },
): Promise<OpenedDocument> {
  const document = await loadDocument(file);
  const operations = readOperations(document);
  const { compiled, isFromCache } = cachedCompilation(document, cacheFolder, () =>
    compileDocument(document, operations),
  );
  return {
    ...{ document, operations, isFromCache },
    index: indexOperations(document, operations),
    parameters: loadValidators(compiled.parameters),
    bodies: loadValidators(compiled.bodies),
  };
}
