import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';

// Writes src/generated: the types of the document, what each operation takes and returns, and what the client must
// know of it at run time. Plain JavaScript, so that Node.js 20 runs it.

const root = join(import.meta.dirname, '..');
const path = process.argv[2] ?? join(root, '..', '..', 'openapi', 'openapi.json');
const document = JSON.parse(readFileSync(path, 'utf8'));

/** The headers that the client sends itself. Callers do not see them in the types. */
const own = {
  ServiceAppId: undefined,
  ClientAppId: undefined,
  IdempotencyKey: 'idempotent',
  AuthorizationSignature: 'signed',
  RequestExpiry: 'expires',
};
const nameOf = ({ $ref }) => $ref?.split('/').at(-1);
const isOwn = (name) => name !== undefined && name in own;

/** Returns the source of the type of what an operation takes. */
function inputOf({ operationId, parameters = [], requestBody }) {
  const all = parameters.map((each) => document.components.parameters[nameOf(each) ?? ''] ?? each);
  const members = ['path', 'query'].flatMap((place) => {
    const placed = all.filter((each) => each.in === place);
    if (placed.length === 0) return [];
    const optional = placed.some(({ required }) => required) ? '' : '?';
    return `readonly ${place}${optional}: NonNullable<operations['${operationId}']['parameters']['${place}']>`;
  });
  if (requestBody !== undefined) {
    const body = `NonNullable<operations['${operationId}']['requestBody']>['content']['application/json']`;
    members.push(`readonly body${requestBody.required ? '' : '?'}: ${body}`);
  }
  return `{ ${members.join('; ')} }`;
}

/** Returns the source of the type of the answer, and that of an item if the answer is one page of a list. */
function outputOf({ operationId, responses }) {
  const [[type, { schema }]] = Object.entries(responses['200']?.content ?? { '': { schema: {} } });
  if (type === '') return ['undefined', undefined];
  const output = `operations['${operationId}']['responses'][200]['content']['${type}']`;
  const { properties = {} } = document.components.schemas[nameOf(schema) ?? ''] ?? schema;
  const items = Object.entries(properties).find(([, property]) => property.items !== undefined)?.[0];
  const isPage = 'next_cursor' in properties && items !== undefined;
  return [output, isPage ? `${output}['${items}'][number]` : undefined];
}

const table = {};
const calls = [];
const lists = [];
const codes = new Set();
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
    const [output, item] = outputOf(operation);
    const { operationId, summary } = operation;
    calls.push(
      `  /** ${summary} */\n  ${operationId}: { input: ${inputOf(operation)}; output: ${output} };\n`,
    );
    if (item !== undefined) lists.push(`  ${operationId}: ${item};\n`);
    for (const [, code] of JSON.stringify(operation.responses).matchAll(/"code":"([a-z_]+)"/g))
      codes.add(code);
  }
}

const generated = join(root, 'src', 'generated');
mkdirSync(generated, { recursive: true });
const types = await openapiTS(document, { alphabetize: true });
writeFileSync(join(generated, 'api.ts'), astToString(types));
writeFileSync(
  join(generated, 'operations.ts'),
  `import type { operations } from './api.ts';

/** What each operation takes and returns. */
export interface Operations {
${calls.join('')}}

/** An item of each list that has pages. */
export interface Lists {
${lists.join('')}}

export const operationTable = ${JSON.stringify(table, null, 2)};

/** The codes that the document names. A newer server may know more. */
export type KnownCode =
${[...codes]
  .sort()
  .map((code) => `  | '${code}'`)
  .join('\n')};
`,
);
