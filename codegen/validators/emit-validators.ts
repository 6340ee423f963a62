import { join } from 'node:path';
import { build, transform } from 'esbuild';
import type { Document, Schema } from '../document.ts';
import { header } from '../document.ts';
import type { Operation, OperationParameter } from '../read-operations.ts';
import { type Openness, type SchemaCompiler, schemaCompiler } from './compile-schemas.ts';
import { bodyShapesModule, validatorTypes } from './emit-validator-types.ts';
import { addCompiled, type CodeGraph, modulePart, renamer, sharedFunctions } from './link-validators.ts';

/** The file with the functions that several of the other files use. */
const SHARED_FILE = 'shared-validators.js';
/** The file with the validators of parameters. They coerce values, so they share no functions with the other files. */
const PARAMETER_FILE = 'parameter-validators.js';
/** The file with the table of formats and the parts of Ajv that compiled code calls. */
const RUNTIME_FILE = 'validator-runtime.js';

const ROOT = join(import.meta.dirname, '..', '..');

/** A table to emit: its lines and the functions to which they refer. */
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

/** Returns the schema of `{path, query, headers}`. It allows undeclared query parameters and headers. */
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

/** Makes the tables of the validators without coercion, over a common code graph. */
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
    const bodyField =
      body === undefined ? '' : `, body: ${compiled(request, body.schema, 'as-written', `${id} body`)}`;
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

/** An unformatted module, with functions of a graph and their exports. */
interface Module {
  readonly graph: CodeGraph;
  readonly roots: Iterable<string>;
  /** The functions that the shared file contains. */
  readonly shared?: ReadonlySet<string>;
  readonly prelude?: readonly string[];
  readonly exported: readonly string[];
}

function moduleCode({ graph, roots, shared = new Set(), prelude = [], exported }: Module): string {
  const { text, imports, runtime } = modulePart(graph, roots, shared);
  const runtimeNames = [...(/\bformats\b/.test(text) ? ['formats'] : []), ...runtime];
  const importLine = (names: readonly string[], file: string): string[] =>
    names.length === 0 ? [] : [`import {\n${names.join(',\n')}\n} from './${file}';`];
  return [
    ...importLine(runtimeNames, RUNTIME_FILE),
    ...importLine(imports, SHARED_FILE),
    ...prelude,
    text,
    ...exported,
  ].join('\n');
}

function tableModule(graph: CodeGraph, table: Table, shared: ReadonlySet<string>, prelude: string[]): Module {
  const exported = [`export const ${table.exportName} = {`, ...table.lines, '};'];
  return { graph, roots: table.roots, shared, prelude, exported };
}

function parametersModule(document: Document, operations: readonly Operation[]): Module {
  const compiler = schemaCompiler(document, { coerce: true });
  const graph: CodeGraph = new Map();
  const names = operations.map((operation) => {
    const validate = compiler.compile(parametersSchema(operation), 'as-written', operation.id);
    return [operation.id, addCompiled(graph, validate)] as const;
  });
  const exported = [`export {\n${names.map(([id, name]) => `${name} as ${id}`).join(',\n')}\n};`];
  return { graph, roots: names.map(([, name]) => name), exported };
}

/**
 * Formats code with half of the usual indentation, because compiled conditions are deeply nested. Removes unused
 * code, because Ajv emits every schema, even when no error refers to it.
 */
async function format(code: string): Promise<string> {
  const { code: formatted } = await transform(code, {
    format: 'esm',
    target: 'es2024',
    treeShaking: true,
    legalComments: 'none',
  });
  return formatted
    .replaceAll(/^ +;\n/gm, '')
    .replaceAll(/^( +)\1/gm, '$1')
    .replaceAll(/^}\n(?=\w)/gm, '}\n\n');
}

/** Bundles the table of formats and the parts of Ajv that the graphs call into one module. */
async function runtimeModule(graphs: readonly CodeGraph[]): Promise<string> {
  const parts = new Map(
    graphs
      .flatMap((graph) => [...graph.values()])
      .flatMap(({ kind, title, text }) => (kind === 'runtime' ? [[title, text] as const] : [])),
  );
  const lines = ["export { formats } from './formats.ts';", ...[...parts].sort().map(([, text]) => text)];
  const result = await build({
    stdin: {
      contents: lines.join('\n'),
      resolveDir: import.meta.dirname,
      sourcefile: 'entry.js',
      loader: 'js',
    },
    // The output contains file names, which must not depend on the current directory.
    absWorkingDir: ROOT,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'es2024',
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  });
  return result.outputFiles[0]?.text ?? '';
}

/** Returns the validators, their tables and their types, by file name. */
export async function emitValidators(
  document: Document,
  operations: readonly Operation[],
  webhooks: ReadonlyMap<string, Schema>,
): Promise<Map<string, string>> {
  const compiler = schemaCompiler(document, { coerce: false });
  const { graph, request, response, webhook } = compileTables(compiler, operations, webhooks);
  const shared = sharedFunctions(graph, [request.roots, response.roots, webhook.roots]);
  const parameters = parametersModule(document, operations);
  const paramsImport = `import * as params from './${PARAMETER_FILE}';`;
  const modules = new Map<string, Module>([
    [PARAMETER_FILE, parameters],
    [request.file, tableModule(graph, request, shared, [paramsImport])],
    [response.file, tableModule(graph, response, shared, [NO_BODY])],
  ]);
  if (webhooks.size > 0) modules.set(webhook.file, tableModule(graph, webhook, shared, []));
  if (shared.size > 0) {
    const exported = [`export {\n${[...shared].join(',\n')}\n};`];
    modules.set(SHARED_FILE, { graph, roots: shared, exported });
  }
  const files = validatorTypes(document, webhooks.size > 0);
  files.set(RUNTIME_FILE, header(document) + (await runtimeModule([graph, parameters.graph])));
  for (const [file, module] of modules) {
    const rename = renamer(module.graph);
    files.set(file, header(document) + (await format(rename(moduleCode(module)))));
  }
  const bodies = operations.flatMap(({ id, body }) =>
    body === undefined ? [] : [[id, body.schema] as const],
  );
  files.set('body-shapes.ts', bodyShapesModule(document, new Map(bodies)));
  return files;
}
