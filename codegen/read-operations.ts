import {
  ContractError,
  type Document,
  operationObjects,
  type Parameter,
  resolveParameter,
  resolveSchema,
  type Schema,
} from './document.ts';

export interface OperationParameter {
  readonly name: string;
  readonly required: boolean;
  readonly description: string | undefined;
  readonly schema: Schema;
}

/** One operation with the properties that the emitters need. */
export interface Operation {
  readonly id: string;
  /** The method in upper case. */
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly summary: string | undefined;
  readonly pathParameters: readonly OperationParameter[];
  readonly queryParameters: readonly OperationParameter[];
  /** The headers, with names in lower case. The app id header is omitted, because authentication reads it. */
  readonly headers: readonly OperationParameter[];
  readonly body: { readonly required: boolean; readonly schema: Schema } | undefined;
  /** The names of the fields of a body that may also be a form. Undefined if the body is always JSON. */
  readonly formFields: readonly string[] | undefined;
  /** The maximum size of the body. Undefined for the common limit. */
  readonly maxBodyBytes: number | undefined;
  readonly isReadOnly: boolean;
  readonly successStatus: number;
  /** The media type of a success response that is a file. Undefined for JSON. */
  readonly fileType: string | undefined;
  /** The schema of the success response. Undefined when it has no body. */
  readonly success: Schema | undefined;
  /** The schemas of all responses by status, including the success. Undefined for a response without a body. */
  readonly responses: ReadonlyMap<string, Schema | undefined>;
  readonly security: 'none' | 'app' | 'app-or-origin' | 'app-or-user' | 'oauth-client';
}

const APP_ID_HEADER = 'service-app-id';
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

function jsonSchema(
  content: Record<string, { schema?: Schema }> | undefined,
  where: string,
): Schema | undefined {
  if (content === undefined) return undefined;
  const schema = content[JSON_TYPE]?.schema;
  if (schema === undefined || Object.keys(content).length !== 1) {
    throw new ContractError(`${where}: expected a single media type ${JSON_TYPE} with a schema`);
  }
  return schema;
}

/** Returns the media type of a success response that is a file: text of a type other than JSON. Undefined for JSON. */
function fileTypeOf(
  document: Document,
  content: Record<string, { schema?: Schema }> | undefined,
): string | undefined {
  const [[type, { schema }], ...others] = Object.entries(content ?? { [JSON_TYPE]: {} }) as [
    [string, { schema?: Schema }],
  ];
  if (type === JSON_TYPE || others.length > 0 || schema === undefined) return undefined;
  return resolveSchema(document, schema).type === 'string' ? type : undefined;
}

/** Returns the field names of a request body that may also be a form with the same schema. Undefined if it may not. */
function formFieldsOf(
  document: Document,
  { [FORM_TYPE]: form, [JSON_TYPE]: json }: Record<string, { schema?: Schema }>,
  where: string,
): string[] | undefined {
  if (form === undefined) return undefined;
  const { schema } = form;
  if (schema === undefined || JSON.stringify(schema) !== JSON.stringify(json?.schema)) {
    throw new ContractError(`${where}: expected the form to have the schema of the JSON body`);
  }
  const target = resolveSchema(document, schema);
  const shapes = [target, ...(target.oneOf ?? []).map((branch) => resolveSchema(document, branch))];
  return [...new Set(shapes.flatMap(({ properties }) => Object.keys(properties ?? {})))].sort();
}

function parametersOf(parameters: readonly Parameter[], place: Parameter['in']): OperationParameter[] {
  return parameters
    .filter((parameter) => parameter.in === place)
    .map((parameter) => ({
      name: place === 'header' ? parameter.name.toLowerCase() : parameter.name,
      required: parameter.required === true,
      description: parameter.description,
      schema: parameter.schema ?? {},
    }));
}

function securityOf(requirements: readonly Record<string, string[]>[]): Operation['security'] {
  if (requirements.length === 0) return 'none';
  const has = (scheme: string): boolean => requirements.some((requirement) => scheme in requirement);
  if (has('oauthClient')) return 'oauth-client';
  if (has('userToken')) return 'app-or-user';
  return has('appOrigin') ? 'app-or-origin' : 'app';
}

function requirePathParameters(path: string, declared: readonly OperationParameter[], pointer: string): void {
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]).sort();
  const named = declared.map(({ name }) => name).sort();
  if (inPath.join() !== named.join()) {
    throw new ContractError(`${pointer}: expected the path parameters [${inPath}], got [${named}]`);
  }
}

/** Reads the bundled document as a list of operations, sorted by operationId. */
export function readOperations(document: Document): Operation[] {
  const operations = operationObjects(document)
    .filter(({ kind }) => kind === 'path')
    .map(({ operation, pointer, route, method }): Operation => {
      const parameters = (operation.parameters ?? []).map((entry) => resolveParameter(document, entry));
      const responses = new Map(
        Object.entries(operation.responses ?? {}).map(([status, { content }]) => {
          const fileType = status.startsWith('2') ? fileTypeOf(document, content) : undefined;
          const schema =
            fileType === undefined
              ? jsonSchema(content, `${pointer}/responses/${status}`)
              : content?.[fileType]?.schema;
          return [status, schema];
        }),
      );
      const successes = [...responses.keys()].filter((status) => status.startsWith('2'));
      const success = successes[0];
      if (success === undefined || successes.length > 1) {
        throw new ContractError(`${pointer}: expected exactly one 2xx response, got ${successes.length}`);
      }
      const pathParameters = parametersOf(parameters, 'path');
      requirePathParameters(route, pathParameters, pointer);
      const { [FORM_TYPE]: _form, ...content } = operation.requestBody?.content ?? {};
      const bodySchema =
        operation.requestBody === undefined ? undefined : jsonSchema(content, `${pointer}/requestBody`);
      return {
        id: operation.operationId ?? '',
        method: method.toUpperCase(),
        path: route,
        tag: operation.tags?.[0] ?? '',
        summary: operation.summary,
        pathParameters,
        queryParameters: parametersOf(parameters, 'query'),
        headers: parametersOf(parameters, 'header').filter(({ name }) => name !== APP_ID_HEADER),
        body:
          bodySchema === undefined
            ? undefined
            : { required: operation.requestBody?.required === true, schema: bodySchema },
        formFields: formFieldsOf(document, operation.requestBody?.content ?? {}, `${pointer}/requestBody`),
        maxBodyBytes: operation['x-max-body-bytes'],
        isReadOnly: operation['x-read-only'] === true,
        successStatus: Number(success),
        fileType: fileTypeOf(document, operation.responses?.[success]?.content),
        success: responses.get(success),
        responses,
        security: securityOf(operation.security ?? document.security),
      };
    });
  return operations.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns the payload schema of each event in `webhooks`, sorted by type. */
export function readWebhooks(document: Document): Map<string, Schema> {
  const entries = operationObjects(document)
    .filter(({ kind }) => kind === 'webhook')
    .map(({ operation, route, pointer }): [string, Schema] => [
      route,
      jsonSchema(operation.requestBody?.content, `${pointer}/requestBody`) ?? {},
    ]);
  return new Map(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
