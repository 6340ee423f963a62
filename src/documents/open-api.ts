/** The parts of an OpenAPI 3.1 document that are read here. References lead to places within it. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers?: readonly { readonly url: string }[];
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths?: Readonly<Record<string, PathItem>>;
  readonly components?: { readonly securitySchemes?: Readonly<Record<string, SecurityScheme>> };
}

export interface PathItem {
  readonly parameters?: readonly unknown[];
  readonly [method: string]: unknown;
}

export interface OperationObject {
  readonly operationId?: string;
  readonly parameters?: readonly unknown[];
  readonly requestBody?: unknown;
  readonly responses?: Readonly<Record<string, unknown>>;
  readonly security?: OpenApiDocument['security'];
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly required?: boolean;
  readonly style?: string;
  readonly explode?: boolean;
  readonly schema?: unknown;
  readonly content?: Content;
}

export type Content = Readonly<Record<string, MediaType>>;

export interface MediaType {
  readonly schema?: unknown;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, unknown>>;
}

export interface SecurityScheme {
  readonly type: string;
  readonly scheme?: string;
  readonly name?: string;
  readonly in?: 'header' | 'query' | 'cookie';
}

/** A node of the document, and where it is: `/paths/~1pets/get`. */
export interface Located<Node> {
  readonly node: Node;
  readonly pointer: string;
}

/** One step of a JSON pointer (RFC 6901). */
export function pointerTo(...steps: readonly (string | number)[]): string {
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Follows references; a chain that leads nowhere ends as undefined. */
export function locate<Node>(document: OpenApiDocument, pointer: string): Located<Node> | undefined {
  let at = pointer;
  // A chain of references that ends in itself is no document; the limit ends it.
  for (let step = 0; step < 100; step += 1) {
    const node = read(document, at);
    if (node === undefined) return undefined;
    const { $ref: reference } = (typeof node === 'object' && node !== null ? node : {}) as { $ref?: unknown };
    if (typeof reference !== 'string' || !reference.startsWith('#'))
      return { node: node as Node, pointer: at };
    at = reference.slice(1);
  }
  return undefined;
}

function read(document: OpenApiDocument, pointer: string): unknown {
  let node: unknown = document;
  for (const step of pointer.split('/').slice(1)) {
    const name = unescaped(step);
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return undefined;
    node = (node as Record<string, unknown>)[name];
  }
  return node;
}

function unescaped(step: string): string {
  const text = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
