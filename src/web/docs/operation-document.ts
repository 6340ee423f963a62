/** The members of a JSON schema that the pages read. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly 'x-format'?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly deprecated?: boolean;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly discriminator?: {
    readonly propertyName: string;
    readonly mapping?: Readonly<Record<string, string>>;
  };
}

/** The document's `components.schemas`, by name. */
export type Schemas = Readonly<Record<string, Schema>>;

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema: Schema;
}

export interface Example {
  readonly summary?: string;
  readonly value: unknown;
}

export interface Content {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, Example>>;
}

export interface Response {
  readonly description: string;
  readonly content?: Readonly<Record<string, Content>>;
}

/** One operation or event, with every schema to which it refers. */
export interface OperationDocument {
  readonly id: string;
  readonly tag: string;
  readonly method: string;
  /** Undefined for an event. */
  readonly path?: string;
  /** The type of an event. */
  readonly event?: string;
  readonly summary: string;
  readonly description?: string;
  /** The names of the security schemes. Any one of them is sufficient. */
  readonly security: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Response>>;
  readonly schemas: Schemas;
}

/** The facts about the server that serves the pages. */
export interface Settings {
  /** The prefix of header names, for example `service` in `service-app-id`. */
  readonly prefix: string;
  readonly credentials?: { readonly appId: string; readonly appSecret: string };
  /** Published private keys (PKCS#8 in base64), with the names of their owners. */
  readonly signers: readonly { readonly name: string; readonly privateKey: string }[];
  /** The ids of existing resources, by the name of the path parameter. */
  readonly ids: Readonly<Record<string, string>>;
  /** The file with a sandbox's certificate authority, which clients must trust. */
  readonly caFile?: string;
  /** The base URL that code samples call. Only set in pages without a server; other pages use their own origin. */
  readonly origin?: string;
}
