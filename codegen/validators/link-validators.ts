import type { ValidateFunction } from 'ajv';

/** One top-level declaration in compiled code and the names that it uses. */
interface Declaration {
  readonly text: string;
  readonly kind: 'function' | 'value' | 'runtime';
  /** A readable name, because the names in the graph are Ajv's numbered ones. */
  readonly title: string;
  readonly uses: readonly string[];
}

/** Compiled code as a graph: name -> declaration. Names are unique within one Ajv instance. */
export type CodeGraph = Map<string, Declaration>;

/** The source that Ajv retains for a compiled function with `code.source`, as used by its standalone output. */
interface CompiledSource {
  readonly validateName: { readonly str: string };
  readonly validateCode: string;
  readonly scopeValues: Record<string, Set<ScopeName> | undefined>;
}

interface ScopeName {
  readonly str: string;
  /** `key` is Ajv's key for the value, or the name of a format. */
  readonly value: { readonly ref: unknown; readonly key?: unknown; readonly code?: { toString(): string } };
}

/** A compiled function, or a holder of one that was referenced while it was still being compiled. */
interface Compiled {
  readonly source?: CompiledSource | undefined;
  readonly schema?: unknown;
  readonly validate?: unknown;
}

function sourceOf(validate: Compiled | undefined, name: string): CompiledSource {
  if (validate?.source === undefined) throw new Error(`expected compiled source for ${name}`);
  return validate.source;
}

/** Converts an id to a name: `inline-createWallet-200` -> `CreateWallet200`. */
function pascalCase(id: string): string {
  const words = id.replace(/^inline-/, '').split(/[^A-Za-z0-9]+/);
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function idOf(schema: unknown): string {
  return (schema as { $id?: string } | undefined)?.$id ?? '';
}

/** Makes the declaration of a value to which compiled code refers: a schema, a format, a pattern or a part of Ajv. */
function valueDeclaration(name: string, { ref, key }: ScopeName['value'], code: string): Declaration {
  const [, runtimeModule] = /^require\("(.+)"\)\.default$/.exec(code) ?? [];
  if (runtimeModule !== undefined) {
    const title = runtimeModule.split('/').at(-1)!;
    return { text: `export const ${title} = ${code};`, kind: 'runtime', title, uses: [] };
  }
  const titles: Record<string, string> = {
    schema: `schema${pascalCase(idOf(ref))}`,
    formats: `format${pascalCase(String(key))}`,
    func: code.split('.').at(-1)!,
  };
  const prefix = name.replace(/\d+$/, '');
  return {
    text: `const ${name} = ${code};`,
    kind: 'value',
    title: titles[prefix] ?? prefix,
    uses: [],
  };
}

/**
 * Adds a compiled function and its dependencies to the graph. Returns the function's name. NOTE: Ajv's own standalone
 * output is not used, because it declares functions twice when schemas refer to each other cyclically.
 */
export function addCompiled(graph: CodeGraph, root: ValidateFunction): string {
  const open: Compiled[] = [root as unknown as Compiled];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const source = sourceOf(next, 'a schema');
    const { str } = source.validateName;
    if (graph.has(str)) continue;
    const uses: string[] = [];
    const title = `validate${pascalCase(idOf(next.schema))}`;
    graph.set(str, { text: source.validateCode, kind: 'function', title, uses });
    for (const { str: name, value } of Object.values(source.scopeValues).flatMap((names) => [
      ...(names ?? []),
    ])) {
      uses.push(name);
      if (value.code !== undefined) {
        graph.set(name, valueDeclaration(name, value, String(value.code)));
        continue;
      }
      const target = (
        typeof value.ref === 'function' ? value.ref : (value.ref as Compiled).validate
      ) as Compiled;
      const targetName = sourceOf(target, name).validateName.str;
      if (typeof value.ref !== 'function') {
        graph.set(name, {
          text: `const ${name} = { validate: ${targetName} };`,
          kind: 'value',
          title: `holderOf${pascalCase(idOf(target.schema))}`,
          uses: [targetName],
        });
      }
      open.push(target);
    }
  }
  return sourceOf(root as unknown as Compiled, 'a root').validateName.str;
}

/** Maps each name in a graph to the title of its declaration, with a number appended to duplicates. */
function readableNames(graph: CodeGraph): Map<string, string> {
  const taken = new Set<string>();
  const names = new Map<string, string>();
  for (const [name, { title, kind }] of graph) {
    let readable = title;
    for (let count = 2; taken.has(readable) && kind !== 'runtime'; count += 1) readable = `${title}${count}`;
    taken.add(readable);
    names.set(name, readable);
  }
  return names;
}

/** Returns a function that replaces the graph's names in code with readable ones. */
export function renamer(graph: CodeGraph): (code: string) => string {
  const names = readableNames(graph);
  return (code) => code.replaceAll(/\b[a-z]+\d+\b/g, (name) => names.get(name) ?? name);
}

/** Returns the names of all functions that can be reached from the given ones, including themselves. */
function reachableFunctions(graph: CodeGraph, roots: Iterable<string>): Set<string> {
  const seen = new Set<string>();
  const open = [...roots];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(graph.get(next)?.uses ?? []));
  }
  return new Set([...seen].filter((name) => graph.get(name)?.kind === 'function'));
}

/**
 * Returns the functions that can be reached from more than one group of roots. Everything that they call is shared as
 * well.
 */
export function sharedFunctions(graph: CodeGraph, groups: readonly Iterable<string>[]): Set<string> {
  const count = new Map<string, number>();
  for (const group of groups) {
    for (const name of reachableFunctions(graph, group)) count.set(name, (count.get(name) ?? 0) + 1);
  }
  return new Set([...count].filter(([, uses]) => uses > 1).map(([name]) => name));
}

export interface ModulePart {
  /** The declarations in compilation order. */
  readonly text: string;
  /** The names of the functions that the text uses but does not declare. */
  readonly imports: readonly string[];
  /** The names of the parts of Ajv that the text uses. */
  readonly runtime: readonly string[];
}

/** Returns the code of the given functions and their dependencies, without the functions in `elsewhere`. */
export function modulePart(
  graph: CodeGraph,
  roots: Iterable<string>,
  elsewhere: ReadonlySet<string>,
): ModulePart {
  const declared = new Set<string>();
  const imports = new Set<string>();
  const runtime = new Set<string>();
  const open = [...roots];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const declaration = graph.get(next);
    if (elsewhere.has(next)) imports.add(next);
    else if (declaration?.kind === 'runtime') runtime.add(next);
    else if (!declared.has(next)) {
      declared.add(next);
      open.push(...(declaration?.uses ?? []));
    }
  }
  const text = [...graph]
    .filter(([name]) => declared.has(name))
    .map(([, declaration]) => declaration.text)
    .join('\n');
  return { text, imports: [...imports].sort(), runtime: [...runtime].sort() };
}
