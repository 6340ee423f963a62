import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ContractDocument, operationsOf } from '../../src/tools/contract/contract-document.ts';
import type { Route } from './record-answers.ts';

/** The project's root folder. */
export const root = join(import.meta.dirname, '..', '..');

export function readDocument(): ContractDocument {
  return JSON.parse(readFileSync(join(root, 'openapi', 'openapi.json'), 'utf8')) as ContractDocument;
}

export function routesOf(document: ContractDocument): Route[] {
  return operationsOf(document).map(({ method, path, operation }) => [method, path, operation.operationId]);
}
