import { readFileSync } from 'node:fs';
import { UnmeasurableError } from '../start-error.ts';
import type { OpenApiDocument } from './open-api.ts';

/** What the parser reports about a document that does not have the shape of OpenAPI. */
interface SchemaFault {
  readonly instancePath: string;
  readonly keyword: string;
  readonly message?: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const MAX_FAULTS = 10;

/**
 * Reads an OpenAPI 3.1 document from a JSON or YAML file, with the files that it refers to as part of it.
 *
 * @throws UnmeasurableError with the place of each fault, as a JSON pointer.
 */
export async function loadDocument(file: string): Promise<OpenApiDocument> {
  try {
    readFileSync(file);
  } catch (cause) {
    throw new UnmeasurableError(`\`${file}\` cannot be read: ${(cause as Error).message}`, { cause });
  }
  const { default: SwaggerParser } = await import('@apidevtools/swagger-parser');
  // Documents come from others: nothing is loaded from the network for them.
  const options = { resolve: { http: false, external: true } } as const;
  const document = await SwaggerParser.bundle(file, options as object).catch((cause: Error) => {
    throw new UnmeasurableError(`\`${file}\`: ${firstLine(cause)}`, { cause });
  });
  const { openapi } = document as { openapi?: unknown };
  if (!/^3\.1(\.|$)/.test(String(openapi))) {
    throw new UnmeasurableError(`\`${file}\`: expected an OpenAPI 3.1 document, got \`openapi: ${openapi}\``);
  }
  try {
    // The parser modifies what it validates.
    await SwaggerParser.validate(structuredClone(document) as never);
  } catch (cause) {
    const { details } = cause as { details?: SchemaFault[] };
    const faults = details === undefined ? [firstLine(cause as Error)] : describeFaults(details);
    const listed = faults.map((fault) => `  - ${fault}`).join('\n');
    throw new UnmeasurableError(`\`${file}\`: expected a valid OpenAPI document:\n${listed}`, { cause });
  }
  return document as unknown as OpenApiDocument;
}

function firstLine({ message }: Error): string {
  return message.split('\n')[0] ?? '';
}

/** Faults within other faults say most. */
function describeFaults(faults: readonly SchemaFault[]): string[] {
  const depth = ({ instancePath }: SchemaFault): number => instancePath.split('/').length;
  const specific = faults.filter(({ keyword }) => !['oneOf', 'anyOf', 'if', '$ref'].includes(keyword));
  const most = Math.max(...specific.map(depth));
  const lines = specific
    .filter((fault) => depth(fault) === most)
    .map(({ instancePath, message, params }) => {
      const extra = params.unevaluatedProperty ?? params.additionalProperty;
      return `#${instancePath}: ${message ?? 'is not valid'}${extra === undefined ? '' : ` (\`${extra}\`)`}`;
    });
  return [...new Set(lines)].slice(0, MAX_FAULTS);
}
