import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Route } from './record-answers.ts';

/** The project's root folder. */
export const root = join(import.meta.dirname, '..', '..');

interface DocumentOperation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, DocumentResponse>>;
}

interface DocumentResponse {
  readonly content?: Readonly<
    Record<string, { readonly examples?: Readonly<Record<string, { readonly value: unknown }>> }>
  >;
}

export interface ContractDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly webhooks: Readonly<Record<string, unknown>>;
}

/** A combination that the document promises, in the words of the ledger. */
export interface Combination {
  /** `createWallet 400 invalid_data`, `createWallet 200`, `event wallet.created`. */
  readonly name: string;
  /** As it is recorded: some error codes are not sent, and each of them is the only one of its status. */
  readonly recordedAs: string;
  readonly kind: 'success' | 'error' | 'event';
}

export function readDocument(): ContractDocument {
  return JSON.parse(readFileSync(join(root, 'openapi', 'openapi.json'), 'utf8')) as ContractDocument;
}

export function routesOf({ paths }: ContractDocument): Route[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => [method.toUpperCase(), path, operationId] as const,
    ),
  );
}

/** Every operation with each of its statuses and error codes, and every webhook event. */
export function combinationsOf(document: ContractDocument): Combination[] {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  return [
    ...operations.flatMap(({ operationId, responses }) =>
      Object.entries(responses).flatMap(([status, response]) =>
        Number(status) < 400
          ? [
              {
                name: `${operationId} ${status}`,
                recordedAs: `${operationId} ${status}`,
                kind: 'success' as const,
              },
            ]
          : errorsOf(`${operationId} ${status}`, response),
      ),
    ),
    ...Object.keys(document.webhooks).map((type) => {
      const name = `event ${type}`;
      return { name, recordedAs: name, kind: 'event' as const };
    }),
  ];
}

/** The document has one example for each code, under the code's name. */
function errorsOf(prefix: string, { content }: DocumentResponse): Combination[] {
  const examples = Object.entries(content?.['application/json']?.examples ?? {});
  return examples.map(([code, { value }]) => ({
    name: `${prefix} ${code}`,
    recordedAs: (value as { code?: string }).code === undefined ? prefix : `${prefix} ${code}`,
    kind: 'error',
  }));
}
