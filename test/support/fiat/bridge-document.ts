import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: object;
}

interface DocumentedOperation {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
  readonly parameters: readonly { readonly name: string }[];
}

interface Content {
  readonly content: { readonly 'application/json': { readonly schema: object } };
}

/** The description of one operation in the provider's document. */
export interface BridgeOperation {
  /** A name such as `POST /customers/{customerID}/virtual_accounts`. */
  readonly name: string;
  readonly method: string;
  readonly path: RegExp;
  readonly successStatus: number;
  /** Returns the faults in the query and the body of a request. */
  faultsOfRequest(query: URLSearchParams, body: unknown): readonly string[];
  faultsOfResponse(status: number, body: unknown): readonly string[];
}

let operations: readonly BridgeOperation[] | undefined;

/** Reads the operations of the document, to which both the adapter and the local provider must conform. */
export function readBridgeDocument(): readonly BridgeOperation[] {
  operations ??= compileDocument();
  return operations;
}

function compileDocument(): readonly BridgeOperation[] {
  const file = new URL('../../vectors/bridge-api.json', import.meta.url);
  const document = JSON.parse(readFileSync(file, 'utf8')) as Document;
  const ajv = new Ajv({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'bridge', components: document.components });
  const compile = (content: Content): ValidateFunction => {
    const text = JSON.stringify(content.content['application/json'].schema);
    return ajv.compile(JSON.parse(text.replaceAll('"#/components/', '"bridge#/components/')));
  };
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { requestBody, responses, parameters }]) => {
      const name = `${method.toUpperCase()} ${path}`;
      const request = requestBody && compile(requestBody);
      const success = Object.keys(responses)[0]!;
      const validators = new Map(Object.entries(responses).map(([status, each]) => [status, compile(each)]));
      return {
        ...{ name, method: method.toUpperCase(), successStatus: Number(success) },
        path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`),
        faultsOfRequest(query, body) {
          const known = parameters.map((parameter) => parameter.name);
          const unknown = [...query.keys()].filter((key) => !known.includes(key));
          return [
            ...unknown.map((key) => `${name}: unknown query parameter ${key}`),
            ...(request === undefined && body !== undefined ? [`${name}: unexpected body`] : []),
            ...(request === undefined ? [] : faultsOf(name, request, body)),
          ];
        },
        faultsOfResponse: (status, body) =>
          faultsOf(`${name} ${status}`, validators.get(status < 400 ? success : '4XX')!, body),
      };
    }),
  );
}

function faultsOf(name: string, validate: ValidateFunction, body: unknown): readonly string[] {
  if (validate(body)) return [];
  return [
    `${name}: ${JSON.stringify(validate.errors?.map(({ instancePath, message }) => [instancePath, message]))}`,
  ];
}
