import SwaggerParser from '@apidevtools/swagger-parser';
import { bundle } from './bundle.ts';
import { findPlaceholders, requireBounds, requireComplete } from './check-document.ts';
import { findInvalidExamples } from './check-examples.ts';
import type { Contract } from './contracts.ts';
import { ContractError, type Document } from './document.ts';
import { emitBrand } from './emit-brand.ts';
import { emitDefinition } from './emit-definition.ts';
import { emitErrors } from './emit-errors.ts';
import { emitOperations } from './emit-operations.ts';
import { emitRegistry } from './emit-registry.ts';
import { emitSchemas } from './emit-schemas.ts';
import { emitSecrets } from './emit-secrets.ts';
import { expandErrors } from './expansion/expand-errors.ts';
import { linkOperations } from './expansion/link-operations.ts';
import { mapDiscriminators } from './expansion/map-discriminators.ts';
import { stateFormats } from './expansion/state-formats.ts';
import { type Operation, readOperations, readWebhooks } from './read-operations.ts';
import { requireSupportedKeywords } from './supported-keywords.ts';
import { emitValidators } from './validators/emit-validators.ts';

export interface Generated {
  /** The content of each file, by its path relative to the root. */
  readonly files: ReadonlyMap<string, string>;
  readonly operations: readonly Operation[];
  /** The faults that `allowTodo` tolerates. */
  readonly unfinished: readonly string[];
}

export interface GenerateOptions {
  /** Tolerates placeholders and invalid examples, and reports them as `unfinished`. */
  readonly allowTodo?: boolean;
}

async function requireValidOpenApi(document: Document): Promise<void> {
  try {
    // The parser modifies its input.
    await SwaggerParser.validate(structuredClone(document) as never);
  } catch (error) {
    throw new ContractError(`expected a valid OpenAPI document: ${(error as Error).message}`);
  }
}

/**
 * Reads a contract and returns the content of every generated file, without writing any.
 *
 * @throws ContractError
 */
export async function generateContract(
  contract: Contract,
  root: string,
  { allowTodo = false }: GenerateOptions = {},
): Promise<Generated> {
  const bundled = bundle(contract, root);
  const { document } = bundled;
  requireComplete(document);
  expandErrors(bundled, contract);
  requireSupportedKeywords(document);
  requireBounds(document);
  mapDiscriminators(document);
  linkOperations(bundled);
  await requireValidOpenApi(document);
  const unfinished = [
    ...findPlaceholders(document).map((pointer) => `${pointer}: still a placeholder`),
    ...findInvalidExamples(document),
  ];
  if (unfinished.length > 0 && !allowTodo) throw new ContractError('the contract is unfinished:', unfinished);

  const operations = readOperations(document);
  const emitted = new Map([
    ['schemas.ts', emitSchemas(document)],
    ['definition.ts', emitDefinition(document)],
    ['operations.ts', emitOperations(document, operations)],
    ['registry.ts', emitRegistry(contract, document, operations)],
    ...(await emitValidators(document, operations, readWebhooks(document))),
  ]);
  if (contract.emitsCatalogue) {
    emitted.set('errors.ts', emitErrors(document, bundled.catalogue));
    emitted.set('brand.ts', emitBrand(document, bundled.brandedProperties, Object.keys(bundled.catalogue)));
    emitted.set('secrets.ts', emitSecrets(document, operations));
  }
  const files = new Map([[contract.document, `${JSON.stringify(stateFormats(document), null, 1)}\n`]]);
  for (const [name, content] of emitted) files.set(`${contract.generated}/${name}`, content);
  return { files, operations, unfinished };
}
