import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OperationId } from '../../../src/generated/operations.ts';

interface MediaType {
  readonly schema: { readonly $ref?: string };
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Schema {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly 'x-known-values'?: readonly unknown[];
  readonly anyOf?: unknown;
  readonly oneOf?: unknown;
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly example?: unknown;
  readonly schema: Schema;
}

/** The part of a documented operation that tests of all operations read. */
export interface DocumentedOperation {
  readonly operationId: OperationId;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: { readonly 'application/json': MediaType } };
  readonly responses: Readonly<Record<string, unknown>>;
}

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', '..', 'openapi', 'openapi.json'), 'utf8'),
) as {
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { schemas: Record<string, Schema>; parameters: Record<string, Parameter> };
};

/** Every operation of the contract. */
export const documentedOperations: readonly DocumentedOperation[] = Object.values(document.paths)
  .flatMap((item) => Object.values(item))
  .map((operation) => ({ ...operation, parameters: (operation.parameters ?? []).map(resolveParameter) }));

function resolveParameter(parameter: Parameter): Parameter {
  return parameter.$ref === undefined ? parameter : document.components.parameters[nameOf(parameter.$ref)]!;
}

function nameOf($ref: string): string {
  return $ref.split('/').at(-1) ?? '';
}

/**
 * Path and query parameters from the examples of the document; a required one without an example, from its schema.
 */
export function exampleParameters({ parameters = [] }: DocumentedOperation) {
  const of = (place: string) =>
    Object.fromEntries(
      parameters
        .filter((parameter) => parameter.in === place)
        .map((parameter) => [parameter.name, parameter.example ?? firstListed(parameter)])
        .filter(([, value]) => value !== undefined),
    );
  return { path: of('path'), query: of('query') };
}

function firstListed({ required, schema }: Parameter): unknown {
  if (!required) return undefined;
  const listed = schema.$ref === undefined ? schema : document.components.schemas[nameOf(schema.$ref)]!;
  return listed.const ?? (listed.enum ?? listed['x-known-values'])?.[0];
}

/** The example bodies of the document; `[undefined]` for an operation without a body. */
export function exampleBodies({ requestBody }: DocumentedOperation): readonly unknown[] {
  if (requestBody === undefined) return [undefined];
  return Object.values(requestBody.content['application/json'].examples ?? {}).map(({ value }) => value);
}

/** A complete request from the examples of the document. */
export function exampleInput(operation: DocumentedOperation) {
  return { ...exampleParameters(operation), body: exampleBodies(operation)[0] };
}

/** Whether the body may have one of several shapes. */
export function hasBodyChoice({ requestBody }: DocumentedOperation): boolean {
  const schema =
    document.components.schemas[nameOf(requestBody?.content['application/json'].schema.$ref ?? '')];
  return schema?.anyOf !== undefined || schema?.oneOf !== undefined;
}
