import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { OpenApiDocument, OpenApiResponse } from './sandbox.ts';

/** The response to validate. */
interface JudgedAnswer {
  readonly operationId: string;
  readonly status: number;
  readonly contentType: string | undefined;
  /** Undefined when the response has no body. */
  readonly body: unknown;
}

/** Throws when a response is not documented for the operation. */
export type Judge = (answer: JudgedAnswer) => void;

/** The contract's own formats, defined a second time, so that the judge shares no code with the server. */
const ourFormats: Record<string, (value: unknown) => boolean> = {
  cuid2: (value) => isLike(value, /^[0-9a-z]{24}$/),
  'user-did': (value) => isLike(value, /^did:[a-z0-9]+:[0-9a-z]{1,64}$/),
  'unix-seconds': (value) => isTime(value, 253402300799),
  'unix-ms': (value) => isTime(value, 253402300799999),
  'unix-time': (value) => isTime(value, 253402300799999),
};

function isLike(value: unknown, pattern: RegExp): boolean {
  return typeof value !== 'string' || pattern.test(value);
}

function isTime(value: unknown, last: number): boolean {
  return typeof value !== 'number' || (Number.isInteger(value) && value >= 0 && value <= last);
}

/** A validator like that of other tools. It fails the test where they would report an unknown `format`. */
function createAjv(): Ajv2020 {
  const refuse = (...message: unknown[]): never => {
    throw new Error(message.join(' '));
  };
  const ajv = new Ajv2020({
    ...{ strict: false, allErrors: true, validateSchema: false },
    logger: { log: refuse, warn: refuse, error: refuse },
  });
  addFormats.default(ajv);
  ajv.addKeyword({
    keyword: 'x-format',
    compile: (name: string) => {
      const check = ourFormats[name];
      return check ?? refuse(`unknown x-format \`${name}\``);
    },
  });
  return ajv;
}

const jsonType = 'application/json';

/**
 * Makes a function that validates responses against `document`: status, content type, body and, for an error, its
 * code. Ajv compiles it directly from the document, independently of the server's generated validators.
 */
export function createJudge(document: OpenApiDocument): Judge {
  const ajv = createAjv();
  ajv.addSchema({ $id: 'document', ...document });
  const places = new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        operation.operationId,
        { path, method, operation },
      ]),
    ),
  );
  const compiled = new Map<string, ValidateFunction>();

  return ({ operationId, status, contentType, body }) => {
    const place = places.get(operationId);
    if (place === undefined) throw new Error(`the document has no operation ${operationId}`);
    const what = `${operationId} answered ${status} ${JSON.stringify(body)}`;
    const response = place.operation.responses[status];
    if (response === undefined) throw new Error(`${what}: the document has no such status`);
    if (response.content === undefined) {
      if (body !== undefined) throw new Error(`${what}: the document has no body there`);
      return;
    }
    // JSON, or the only media type of a file.
    const [documentedType = jsonType] = Object.keys(response.content);
    if (contentType?.split(';')[0] !== documentedType)
      throw new Error(`${what} as ${contentType}, not ${documentedType}`);
    const pointer = [place.path, place.method, 'responses', status, 'content', documentedType, 'schema'];
    // Nearly all error responses use the same schema, which is compiled once.
    const named = response.content[documentedType]?.schema?.$ref;
    const $ref = `document${named ?? `#/paths/${pointer.map(String).map(escapePointer).join('/')}`}`;
    const validate = compiled.get($ref) ?? ajv.compile({ $ref });
    compiled.set($ref, validate);
    if (!validate(body)) throw new Error(`${what}: ${ajv.errorsText(validate.errors, { dataVar: '' })}`);
    if (status >= 400) requireDocumentedCode(response, (body as { code?: string }).code, what);
  };
}

/** Checks that the code is documented. Every error code of an operation has an example. */
function requireDocumentedCode(response: OpenApiResponse, code: string | undefined, what: string): void {
  const examples = Object.values(response.content?.[jsonType]?.examples ?? {});
  const codes = examples.map(({ value }) => (value as { code?: string }).code);
  if (!codes.includes(code)) throw new Error(`${what}: the document has only the codes ${codes.join(', ')}`);
}

function escapePointer(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}
