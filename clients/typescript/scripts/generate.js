import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';

// Writes src/generated: the types of the document, and what the client must know of each operation at run time.

interface Reference {
  readonly $ref: string;
}
interface Operation {
  readonly operationId: string;
  parameters?: (Reference | { readonly in: string })[];
  readonly responses: Readonly<Record<string, { readonly content?: object }>>;
}

const root = join(import.meta.dirname, '..');
const path = process.argv[2] ?? join(root, '..', '..', 'openapi', 'openapi.json');
const document = JSON.parse(readFileSync(path, 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

/** The headers that the client sends itself. Callers do not see them in the types. */
const own = {
  ServiceAppId: undefined,
  ClientAppId: undefined,
  IdempotencyKey: 'idempotent',
  AuthorizationSignature: 'signed',
  RequestExpiry: 'expires',
} as const;
const nameOf = (parameter: object) =>
  '$ref' in parameter ? String(parameter.$ref).split('/').at(-1) : undefined;
const isOwn = (name: string | undefined): name is keyof typeof own => name !== undefined && name in own;

const table: Record<string, object> = {};
const codes = new Set<string>();
for (const [url, methods] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    if (operation.operationId === undefined) continue;
    const names = operation.parameters?.map(nameOf).filter(isOwn) ?? [];
    const traits = names.flatMap((name) => own[name] ?? []);
    table[operation.operationId] = {
      ...{ method: method.toUpperCase(), path: url },
      ...Object.fromEntries(traits.map((trait) => [trait, true])),
    };
    operation.parameters = operation.parameters?.filter((each) => !isOwn(nameOf(each))) ?? [];
    for (const [, code] of JSON.stringify(operation.responses).matchAll(/"code":"([a-z_]+)"/g))
      codes.add(code!);
  }
}

const generated = join(root, 'src', 'generated');
mkdirSync(generated, { recursive: true });
const types = await openapiTS(document as unknown as OpenAPI3, { alphabetize: true });
writeFileSync(join(generated, 'api.ts'), astToString(types));
writeFileSync(
  join(generated, 'operations.ts'),
  `export const operationTable = ${JSON.stringify(table, null, 2)} as const;

/** The codes that the document names. A newer server may know more. */
export type KnownCode =
${[...codes]
  .sort()
  .map((code) => `  | '${code}'`)
  .join('\n')};
`,
);
