import { type Document, header, type OperationObject, operationObjects } from './document.ts';

const TYPES = `interface DefinedOperation {
  operationId: string;
  tags: string[];
  summary: string;
  security?: Record<string, string[]>[];
  /** Always empty. It is here because the type of openapi-backend requires the property. */
  responses: {};
}

type SecurityScheme = { description: string } & (
  | { type: 'http'; scheme: string; bearerFormat?: string }
  | { type: 'apiKey'; name: string; in: string }
);

interface Definition {
  openapi: string;
  info: { title: string; version: string };
  security: Record<string, string[]>[];
  paths: Record<string, Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', DefinedOperation>>>;
  components: { securitySchemes: Record<string, SecurityScheme> };
}
`;

/**
 * Emits `definition.ts`: the document that the server reads at its start, with every path, operation and security
 * scheme. Parameters, bodies and responses are omitted, because the validators are compiled from them.
 */
export function emitDefinition(document: Document): string {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { kind, route, method, operation } of operationObjects(document)) {
    if (kind === 'path') paths[route] = { ...paths[route], [method]: defined(operation) };
  }
  const { openapi, info, security, components } = document;
  const definition = {
    openapi,
    info: { title: info.title, version: info.version },
    security,
    paths,
    components: { securitySchemes: components.securitySchemes ?? {} },
  };
  return [
    header(document),
    `\n${TYPES}\n`,
    '/** The document without its schemas, from which the validators are compiled. */\n',
    `export const definition: Definition = ${JSON.stringify(definition, null, 2)};\n`,
  ].join('');
}

function defined({ operationId, tags, summary, security }: OperationObject): object {
  return { operationId, tags, summary, ...(security === undefined ? {} : { security }), responses: {} };
}
