import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { type Openness, type SchemaCompiler, schemaCompiler } from './compile-schemas.ts';
import type { Document, Schema } from './document.ts';
import { validatorTypes } from './emit-validator-types.ts';
import { header } from './header.ts';
import { addCompiled, type CodeGraph, modulePart, sharedFunctions } from './link-validators.ts';
import type { Operation, OperationParameter } from './read-operations.ts';

/** The file of the functions that more than one of the other files needs. */
const SHARED_FILE = 'shared-validators.js';

const FOLDER = import.meta.dirname;

/** A file in the making: the lines of the table that it exports and the functions that these name. */
interface Table {
  readonly file: string;
  readonly exportName: string;
  readonly lines: string[];
  readonly roots: Set<string>;
}

function newTable(subject: string): Table {
  return {
    file: `${subject}-validators.js`,
    exportName: `${subject}Validators`,
    lines: [],
    roots: new Set(),
  };
}

/** `{path, query, headers}` as one schema; what is not declared in query and headers is let through. */
function parametersSchema(operation: Operation): Schema {
  const part = (parameters: readonly OperationParameter[]): Schema => ({
    type: 'object',
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  });
  return {
    type: 'object',
    properties: {
      path: part(operation.pathParameters),
      query: part(operation.queryParameters),
      headers: part(operation.headers),
    },
    required: ['path', 'query', 'headers'],
  };
}

const NO_BODY = `function noBody(data) {
  noBody.errors = data === undefined ? null
    : [{ instancePath: '', schemaPath: '#', keyword: 'type', params: {}, message: 'must have no body' }];
  return data === undefined;
}`;

/** The tables of everything that is not coerced, over one graph of code. */
function compileTables(
  compiler: SchemaCompiler,
  operations: readonly Operation[],
  webhooks: ReadonlyMap<string, Schema>,
): { graph: CodeGraph; request: Table; response: Table; webhook: Table } {
  const graph: CodeGraph = new Map();
  const [request, response, webhook] = [newTable('request'), newTable('response'), newTable('webhook')];
  const compiled = (table: Table, schema: Schema, openness: Openness, place: string): string => {
    const name = addCompiled(graph, compiler.compile(schema, openness, place));
    table.roots.add(name);
    return name;
  };
  for (const { id, body, responses } of operations) {
    const bodyField = body === undefined ? '' : `, body: ${compiled(request, body.schema, 'as-written', id)}`;
    request.lines.push(`${id}: { params: params.${id}${bodyField} },`);
    const statuses = [...responses].map(([status, schema]) => {
      const validate =
        schema === undefined ? 'noBody' : compiled(response, schema, 'closed', `${id} ${status}`);
      return `${status}: ${validate}`;
    });
    response.lines.push(`${id}: { ${statuses.join(', ')} },`);
  }
  for (const [type, schema] of webhooks) {
    webhook.lines.push(`${JSON.stringify(type)}: ${compiled(webhook, schema, 'closed', type)},`);
  }
  return { graph, request, response, webhook };
}

/** The validators of parameters, in a module of their own: coercing functions share nothing with the others. */
function parametersModule(document: Document, operations: readonly Operation[]): string {
  const compiler = schemaCompiler(document, { coerce: true });
  const graph: CodeGraph = new Map();
  const names = operations.map(
    (operation) =>
      [
        operation.id,
        addCompiled(graph, compiler.compile(parametersSchema(operation), 'as-written', operation.id)),
      ] as const,
  );
  const { text } = modulePart(
    graph,
    names.map(([, name]) => name),
    new Set(),
  );
  return [
    FORMATS_IMPORT,
    text,
    `export { ${names.map(([id, name]) => `${name} as ${id}`).join(', ')} };`,
  ].join('\n');
}

const FORMATS_IMPORT = `import { formats } from ${JSON.stringify(join(FOLDER, 'formats.ts'))};`;

function virtualModules(modules: Readonly<Record<string, string>>): Plugin {
  return {
    name: 'virtual-modules',
    setup(pluginBuild) {
      pluginBuild.onResolve({ filter: /^virtual:/ }, ({ path }) => ({ path, namespace: 'virtual' }));
      pluginBuild.onLoad({ filter: /.*/, namespace: 'virtual' }, ({ path }) => ({
        contents: modules[path] ?? '',
        loader: 'js',
        resolveDir: FOLDER,
      }));
    },
  };
}

/** One self-contained module, apart from the shared file beside it. */
async function bundleModule(code: string, modules: Readonly<Record<string, string>> = {}): Promise<string> {
  const result = await build({
    stdin: { contents: code, resolveDir: FOLDER, sourcefile: 'entry.js', loader: 'js' },
    bundle: true,
    external: [`./${SHARED_FILE}`],
    format: 'esm',
    platform: 'node',
    target: 'es2024',
    minify: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
    plugins: [virtualModules(modules)],
  });
  return result.outputFiles[0]?.text ?? '';
}

function tableModule(graph: CodeGraph, table: Table, shared: ReadonlySet<string>, prelude: string[]): string {
  const { text, imports } = modulePart(graph, table.roots, shared);
  return [
    FORMATS_IMPORT,
    ...(imports.length === 0 ? [] : [`import { ${imports.join(', ')} } from './${SHARED_FILE}';`]),
    ...prelude,
    text,
    `export const ${table.exportName} = {`,
    ...table.lines,
    '};',
  ].join('\n');
}

/** The validators, their tables and their types, by file name. */
export async function emitValidators(
  document: Document,
  operations: readonly Operation[],
  webhooks: ReadonlyMap<string, Schema>,
): Promise<Map<string, string>> {
  const compiler = schemaCompiler(document, { coerce: false });
  const { graph, request, response, webhook } = compileTables(compiler, operations, webhooks);
  const shared = sharedFunctions(graph, [request.roots, response.roots, webhook.roots]);
  const files = validatorTypes(document, webhooks.size > 0);
  const add = async (file: string, code: string, modules?: Record<string, string>): Promise<void> => {
    files.set(file, header(document) + (await bundleModule(code, modules)));
  };
  await add(
    request.file,
    tableModule(graph, request, shared, ["import * as params from 'virtual:params';"]),
    { 'virtual:params': parametersModule(document, operations) },
  );
  await add(response.file, tableModule(graph, response, shared, [NO_BODY]));
  if (webhooks.size > 0) await add(webhook.file, tableModule(graph, webhook, shared, []));
  if (shared.size > 0) {
    const { text } = modulePart(graph, shared, new Set());
    await add(SHARED_FILE, [FORMATS_IMPORT, text, `export { ${[...shared].join(', ')} };`].join('\n'));
  }
  return files;
}
