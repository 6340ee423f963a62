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
    { file: 'docs/errors.md', path: 'errors', markdown: await errorCodes() },
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

async function errorCodes(): Promise<string> {
  const { errorCatalogue } = await import('../../src/generated/errors.ts');
  const { adviceFor } = await import('../../src/sandbox/why/advice.ts');
  const sections = Object.entries(errorCatalogue).map(([code, { status, message }]) => {
    const [, advice] = adviceFor[code as keyof typeof adviceFor];
    return `## ${code}\n\nStatus ${status}: ${message}.\n\nWhat to do in a sandbox: ${advice}.`;
  });
  return ['# Error codes', 'What each `code` of a refusal means.', ...sections].join('\n\n');
}

function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
