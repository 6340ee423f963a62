import { type Document, header, type Schema, schemaName } from '../document.ts';

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

const SHAPE_TYPES = `/** The types and the required properties of a value, without those in unions. */
export interface BodyShape {
  /** The name of the shape that this one equals. */
  readonly ref?: string;
  readonly types?: readonly string[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, BodyShape>>;
  readonly items?: BodyShape;
  /** The member that tells apart the kinds of an object, and its values. */
  readonly kinds?: { readonly field: string; readonly values: readonly string[] };
}

/** The shapes of bodies by operation, and those to which others refer. Read only when a body is invalid. */
export interface BodyShapes {
  readonly operations: Readonly<Record<string, BodyShape>>;
  readonly named: Readonly<Record<string, BodyShape>>;
}
`;

interface Shape {
  ref?: string;
  types?: string[];
  required?: string[];
  properties?: Record<string, Shape>;
  items?: Shape;
  kinds?: { field: string; values: string[] };
}

/** Returns the module with the shapes of the bodies of all operations. */
export function bodyShapesModule(document: Document, bodies: ReadonlyMap<string, Schema>): string {
  const named: Record<string, Shape> = {};
  const shapeOf = (schema: Schema): Shape => {
    if (schema.$ref !== undefined) {
      const name = schemaName(schema.$ref);
      if (named[name] === undefined) {
        named[name] = {};
        Object.assign(named[name], shapeOf(document.components.schemas[name]!));
      }
      return { ref: name };
    }
    const shape: Shape = {};
    const { propertyName: field, mapping } = schema.discriminator ?? {};
    if (field !== undefined && mapping !== undefined) shape.kinds = { field, values: Object.keys(mapping) };
    // A union may need properties that the object around it does not.
    if (schema.oneOf !== undefined || schema.anyOf !== undefined) return shape;
    if (schema.type !== undefined) shape.types = [schema.type].flat();
    if (schema.required !== undefined && schema.required.length > 0) shape.required = schema.required;
    if (schema.properties !== undefined) {
      const properties = Object.entries(schema.properties);
      shape.properties = Object.fromEntries(properties.map(([name, each]) => [name, shapeOf(each)]));
    }
    if (schema.items !== undefined) shape.items = shapeOf(schema.items);
    return shape;
  };
  const operations = Object.fromEntries([...bodies].map(([id, schema]) => [id, shapeOf(schema)]));
  const shapes = JSON.stringify({ operations, named });
  return `${header(document)}
import type { BodyShapes } from './validate-function.ts';

/** One line, because nobody reads it. */
// biome-ignore format: one line
export const bodyShapes: BodyShapes = ${shapes};
`;
}

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
    ['validate-function.ts', `${head}\n${FUNCTION_TYPES}\n${SHAPE_TYPES}`],
    ['request-validators.d.ts', head + idImport + functionImport + REQUEST_TYPES],
    ['response-validators.d.ts', head + idImport + functionImport + RESPONSE_TYPES],
    ...(withWebhooks ? [['webhook-validators.d.ts', head + functionImport + WEBHOOK_TYPES] as const] : []),
  ]);
}
