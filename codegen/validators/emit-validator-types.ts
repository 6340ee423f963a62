import type { Document } from '../document.ts';
import { header } from '../document.ts';

const FUNCTION_TYPES = `/** One validation error, as reported by Ajv. */
export interface ValidationError {
  readonly keyword: string;
  /** JSON pointer into the value. */
  readonly instancePath: string;
  readonly schemaPath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

/** Compiled by the generator. \`errors\` belongs to the last call; read it before the next one. */
export interface ValidateFunction {
  (data: unknown): boolean;
  errors?: ValidationError[] | null;
}
`;

const REQUEST_TYPES = `/** \`params\` takes \`{path, query, headers}\` and coerces values in place; \`body\` does not coerce. */
export const requestValidators: {
  readonly [Id in OperationId]: { readonly params: ValidateFunction; readonly body?: ValidateFunction };
};
`;

const RESPONSE_TYPES = `/**
 * By operation and status. Undeclared fields are errors. A response without a body must be validated as \`undefined\`.
 */
export const responseValidators: {
  readonly [Id in OperationId]: Readonly<Record<string, ValidateFunction>>;
};
`;

const WEBHOOK_TYPES = `/** By event type. Undeclared fields are errors. */
export const webhookValidators: Readonly<Record<string, ValidateFunction>>;
`;

/** Returns the type declarations of the validator files, by file name. */
export function validatorTypes(document: Document, withWebhooks: boolean): Map<string, string> {
  const functionImport = "import type { ValidateFunction } from './validate-function.ts';\n\n";
  const idImport = "import type { OperationId } from './operations.ts';\n";
  const head = header(document);
  return new Map([
    ['validate-function.ts', `${head}\n${FUNCTION_TYPES}`],
    ['request-validators.d.ts', head + idImport + functionImport + REQUEST_TYPES],
    ['response-validators.d.ts', head + idImport + functionImport + RESPONSE_TYPES],
    ...(withWebhooks ? [['webhook-validators.d.ts', head + functionImport + WEBHOOK_TYPES] as const] : []),
  ]);
}
