import {
  allParameters,
  allSchemas,
  type Document,
  type Example,
  mediaTypes,
  pointerStep,
  type Schema,
} from './document.ts';
import { type Openness, schemaCompiler } from './validators/compile-schemas.ts';

interface PlacedExample {
  readonly pointer: string;
  readonly value: unknown;
  readonly schema: Schema;
  readonly schemaPointer: string;
  readonly openness: Openness;
}

interface ExampleHolder {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, Example>;
}

function examplesOf(holder: ExampleHolder, pointer: string, openness: Openness): PlacedExample[] {
  const { schema } = holder;
  if (schema === undefined) return [];
  const placed = { schema, schemaPointer: `${pointer}/schema`, openness };
  return [
    ...(holder.example === undefined
      ? []
      : [{ ...placed, pointer: `${pointer}/example`, value: holder.example }]),
    ...Object.entries(holder.examples ?? {}).map(([name, example]) => ({
      ...placed,
      pointer: `${pointer}/examples${pointerStep(name)}/value`,
      value: example.value,
    })),
  ];
}

/** Returns the `example` and `examples` keywords of a schema. */
function schemaExamples(schema: Schema, pointer: string): PlacedExample[] {
  const placed = { schema, schemaPointer: pointer, openness: 'as-written' as const };
  return [
    ...(schema.example === undefined
      ? []
      : [{ ...placed, pointer: `${pointer}/example`, value: schema.example }]),
    ...(Array.isArray(schema.examples) ? schema.examples : []).map((value, index) => ({
      ...placed,
      pointer: `${pointer}/examples/${index}`,
      value,
    })),
  ];
}

function collectExamples(document: Document): PlacedExample[] {
  return [
    ...mediaTypes(document).flatMap(({ media, pointer, sent }) =>
      examplesOf(media, pointer, sent === 'out' ? 'closed' : 'as-written'),
    ),
    ...allParameters(document).flatMap(([parameter, pointer]) =>
      examplesOf(parameter, pointer, 'as-written'),
    ),
    ...[...allSchemas(document)].flatMap(([schema, pointer]) => schemaExamples(schema, pointer)),
  ];
}

/**
 * Lists the examples that do not match their schema, as `pointer to the example + pointer within it: reason`.
 * Examples of responses and webhooks are checked against the closed schemas, like responses.
 */
export function findInvalidExamples(document: Document): string[] {
  const compiler = schemaCompiler(document, { coerce: false });
  return collectExamples(document).flatMap(({ pointer, value, schema, schemaPointer, openness }) => {
    const validate = compiler.compile(schema, openness, schemaPointer);
    if (validate(value) === true) return [];
    const reasons = (validate.errors ?? []).map((error) => {
      const property = error.params.additionalProperty ?? error.params.missingProperty;
      const named = property === undefined ? '' : ` (\`${property}\`)`;
      return `${pointer}${error.instancePath}: ${error.message}${named}`;
    });
    return reasons.slice(0, 3);
  });
}
