import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A page of the manual that is generated from the contract, in Markdown. */
export interface WrittenGuide {
  readonly file: string;
  readonly path: string;
  readonly markdown: string;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly description?: string;
  readonly schema?: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly schema?: Schema; readonly examples?: Record<string, { value?: unknown }> }>
    >;
  };
  readonly responses?: Readonly<
    Record<
      string,
      {
        readonly content?: Readonly<
          Record<string, { readonly examples?: Record<string, { value?: unknown }> }>
        >;
      }
    >
  >;
}

interface Document {
  readonly info: { readonly summary?: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Returns the pages of the manual about the control plane and the error codes. */
export async function writtenGuides(root: string): Promise<WrittenGuide[]> {
  return [
    { file: 'docs/control-plane.md', path: 'control-plane', markdown: controlPlane(root) },
    ...(await errorPages(root)),
  ];
}

function controlPlane(root: string): string {
  const text = readFileSync(join(root, 'openapi', 'control-plane.json'), 'utf8');
  const document = JSON.parse(text) as Document;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = document.tags.map(({ name, description = '' }) => {
    const inTag = operations.filter(({ operation }) => operation.tags[0] === name);
    return [`## ${titleOf(name)}`, description, ...inTag.map((each) => operationText(document, each))].join(
      '\n\n',
    );
  });
  const begin = `# The control plane

${document.info.summary ?? ''} A sandbox answers these operations below \`/_sandbox\`, and describes them at \`/_sandbox/openapi.json\`.`;
  return [begin, ...sections].join('\n\n');
}

function operationText(
  document: Document,
  { path, method, operation }: { path: string; method: string; operation: Operation },
): string {
  const { operationId, summary, description = '', parameters = [], requestBody } = operation;
  const given = parameters.map((parameter) => resolve(document, parameter));
  const [content] = Object.values(requestBody?.content ?? {});
  const schema = content?.schema && resolve(document, content.schema);
  const rows = [
    ...given.map((each) =>
      row(document, `${each.name} (${each.in})`, { ...each.schema, description: each.description ?? '' }),
    ),
    ...Object.entries(schema?.properties ?? {}).map(([name, property]) =>
      row(document, schema?.required?.includes(name) === true ? `${name} (required)` : name, property),
    ),
  ];
  const table =
    rows.length === 0 ? [] : [['| input | type | meaning |', '|---|---|---|', ...rows].join('\n')];
  const [example] = Object.values(content?.examples ?? {});
  const body =
    example?.value === undefined ? [] : [`\`\`\`json\n${JSON.stringify(example.value, null, 2)}\n\`\`\``];
  const heading = `### ${operationId}`;
  return [heading, `\`${method.toUpperCase()} ${path}\`: ${summary}`, description, ...table, ...body].join(
    '\n\n',
  );
}

function row(document: Document, name: string, given: Schema): string {
  const schema = resolve(document, given);
  const values = schema.enum?.map((value) => `\`${String(value)}\``).join(', ');
  const type = values ?? [schema.type ?? 'object'].flat().join(' or ');
  const meaning = given.description ?? schema.description ?? '';
  return `| ${[name.replace(/^\S+/, '`$&`'), type, meaning].map(cell).join(' | ')} |`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
}

function resolve<Value extends { readonly $ref?: string }>(document: Document, value: Value): Value {
  if (value.$ref === undefined) return value;
  const names = value.$ref.slice(2).split('/');
  return names.reduce((at, name) => (at as Record<string, unknown>)[name], document as unknown) as Value;
}

/** Returns a page for each error code, and the list of these pages. */
async function errorPages(root: string): Promise<WrittenGuide[]> {
  const { errorCatalogue } = await import('../../src/generated/errors.ts');
  const { errorTexts } = await import('../../src/sandbox/why/error-texts.ts');
  const text = readFileSync(join(root, 'openapi', 'openapi.json'), 'utf8');
  const examples = errorExamples(JSON.parse(text) as Document);
  const codes = Object.keys(errorCatalogue).sort() as (keyof typeof errorCatalogue)[];
  const pages = codes.map((code) => {
    const { status, message } = errorCatalogue[code];
    const { when, expected, next } = errorTexts[code];
    const parts = [
      `# ${code}`,
      `Status ${status}: ${sentence(message)}`,
      `## When\n\n${when} The server expects ${sentence(expected)}`,
      `## What to do\n\n${next} In a sandbox, \`custos why <x-request-id>\` and the inspector say what was wrong with a request, and offer to repair it.`,
      ...exampleText(examples.get(code)),
      '[All error codes](../errors.md)',
    ];
    return { file: `docs/errors/${code}.md`, path: `errors/${code}`, markdown: parts.join('\n\n') };
  });
  const rows = codes.map(
    (code) =>
      `| [${code}](errors/${code}.md) | ${errorCatalogue[code].status} | ${cell(errorTexts[code].when)} |`,
  );
  const list = [
    '# Error codes',
    'Every refusal has a status and a `code`. The codes in a status without `code` in its response, such as 404, are those that the log of a sandbox shows.',
    ['| code | status | when |', '|---|---|---|', ...rows].join('\n'),
  ];
  return [{ file: 'docs/errors.md', path: 'errors', markdown: list.join('\n\n') }, ...pages];
}

/** An example of an error: an operation that documents it, and the body of its response. */
interface ErrorExample {
  readonly operations: string[];
  readonly request: string;
  readonly body: unknown;
}

/** Returns the first documented example of each error code, and the operations that have one. */
function errorExamples(document: Document): ReadonlyMap<string, ErrorExample> {
  const found = new Map<string, ErrorExample>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { operationId, responses = {} }] of Object.entries(methods)) {
      const contents = Object.values(responses).flatMap(({ content = {} }) => Object.values(content));
      for (const [code, { value }] of contents.flatMap(({ examples = {} }) => Object.entries(examples))) {
        const known = found.get(code);
        if (known !== undefined) known.operations.push(operationId);
        else {
          const request = `${method.toUpperCase()} ${path}`;
          found.set(code, { operations: [operationId], request, body: value });
        }
      }
    }
  }
  return found;
}

const MAX_OPERATIONS = 10;

function exampleText(example: ErrorExample | undefined): string[] {
  if (example === undefined) return [];
  const { operations, request, body } = example;
  const names = [...new Set(operations)];
  const shown = names.slice(0, MAX_OPERATIONS).map((name) => `\`${name}\``);
  const more = names.length > MAX_OPERATIONS ? ` and ${names.length - MAX_OPERATIONS} more operations` : '';
  return [
    `## Example\n\nThe response to \`${request}\`:\n\n\`\`\`json\n${JSON.stringify(body, null, 2)}\n\`\`\``,
    `Documented for ${shown.join(', ')}${more}.`,
  ];
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
