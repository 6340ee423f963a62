import type { Document, Schema } from './document.ts';
import { header } from './document.ts';
import { docComment, propertyKey, tsType } from './emit-schemas.ts';
import type { Operation, OperationParameter } from './read-operations.ts';

const PREFIX = 'schemas.';

function parameterType(parameters: readonly OperationParameter[]): string {
  if (parameters.length === 0) return '{}';
  const lines = parameters.map(({ name, required, schema, description }) => {
    const [mark, orUndefined] = required ? ['', ''] : ['?', ' | undefined'];
    const type = tsType(schema, '      ', PREFIX);
    return `${docComment(description, '      ')}      ${propertyKey(name)}${mark}: ${type}${orUndefined};\n`;
  });
  return `{\n${lines.join('')}    }`;
}

function bodyType(body: { required: boolean; schema: Schema } | undefined): string {
  if (body === undefined) return 'undefined';
  return `${tsType(body.schema, '    ', PREFIX)}${body.required ? '' : ' | undefined'}`;
}

function operationType(operation: Operation): string {
  return [
    `${docComment(operation.summary, '  ')}  ${operation.id}: {\n`,
    `    path: ${parameterType(operation.pathParameters)};\n`,
    `    query: ${parameterType(operation.queryParameters)};\n`,
    `    body: ${bodyType(operation.body)};\n`,
    `    response: ${operation.success === undefined ? 'undefined' : tsType(operation.success, '    ', PREFIX)};\n`,
    '  };\n',
  ].join('');
}

function descriptor(operation: Operation): string {
  const accepts = (name: string): boolean => operation.headers.some((parameter) => parameter.name === name);
  const fields = {
    id: operation.id,
    method: operation.method,
    path: operation.path,
    tag: operation.tag,
    successStatus: operation.successStatus,
    ...(operation.fileType === undefined ? {} : { fileType: operation.fileType }),
    hasBody: operation.body !== undefined,
    bodyRequired: operation.body?.required === true,
    ...(operation.formFields === undefined ? {} : { formFields: operation.formFields }),
    ...(operation.maxBodyBytes === undefined ? {} : { maxBodyBytes: operation.maxBodyBytes }),
    ...(operation.isReadOnly ? { isReadOnly: true } : {}),
    signed: accepts('service-authorization-signature'),
    expiry: accepts('service-request-expiry'),
    idempotent: accepts('service-idempotency-key'),
    security: operation.security,
  };
  const entries = Object.entries(fields).map(([name, value]) => `    ${name}: ${JSON.stringify(value)},\n`);
  return `  ${operation.id}: {\n${entries.join('')}  },\n`;
}

const DESCRIPTOR = `/** The properties of an operation that the pipeline needs before it runs the handler. */
export interface OperationDescriptor {
  readonly id: OperationId;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With parameters in braces, as in the document. */
  readonly path: string;
  readonly tag: string;
  readonly successStatus: number;
  /** The media type of a success response that is a file; left out for JSON. */
  readonly fileType?: string;
  readonly hasBody: boolean;
  readonly bodyRequired: boolean;
  /** The fields of a body that may also be a form. */
  readonly formFields?: readonly string[];
  /** Left out for operations with the limit of all bodies. */
  readonly maxBodyBytes?: number;
  readonly isReadOnly?: boolean;
  /** Accepts the header \`service-authorization-signature\`. */
  readonly signed: boolean;
  /** Accepts the header \`service-request-expiry\`. */
  readonly expiry: boolean;
  /** Accepts the header \`service-idempotency-key\`. */
  readonly idempotent: boolean;
  readonly security: 'none' | 'app' | 'app-or-origin' | 'app-or-user' | 'oauth-client';
}
`;

/** Emits `operations.ts`: the input and response types of every operation, and the table of descriptors. */
export function emitOperations(document: Document, operations: readonly Operation[]): string {
  const types = operations.map(operationType).join('');
  const usesSchemas = types.includes(PREFIX);
  return [
    header(document),
    usesSchemas ? "import type * as schemas from './schemas.ts';\n\n" : '\n',
    `export interface Operations {\n${types}}\n\n`,
    'export type OperationId = keyof Operations;\n\n',
    `${DESCRIPTOR}\n`,
    'export const operations: Readonly<Record<OperationId, OperationDescriptor>> = {\n',
    `${operations.map(descriptor).join('')}};\n`,
  ].join('');
}
