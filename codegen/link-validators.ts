import type { ValidateFunction } from 'ajv';

/** One top-level declaration of compiled code and the names that it uses. */
interface Declaration {
  readonly text: string;
  readonly isFunction: boolean;
  readonly uses: readonly string[];
}

/** Compiled code as a graph: name -> declaration. Names are unique within one Ajv. */
export type CodeGraph = Map<string, Declaration>;

/** What Ajv keeps of a compiled function when `code.source` is on: the parts of its own standalone output. */
interface CompiledSource {
  readonly validateName: { readonly str: string };
  readonly validateCode: string;
  readonly scopeValues: Record<string, Set<ScopeName>>;
}

interface ScopeName {
  readonly str: string;
  readonly value: { readonly ref: unknown; readonly code?: { toString(): string } };
}

function sourceOf(validate: unknown, name: string): CompiledSource {
  const source = (validate as { source?: CompiledSource } | undefined)?.source;
  if (source === undefined) throw new Error(`no compiled source for ${name}`);
  return source;
}

/**
 * Adds a compiled function, and all that it needs, to the graph. Returns the function's name.
 * NOTE: Ajv's own standalone writer declares functions twice where schemas refer to each other in a circle.
 */
export function addCompiled(graph: CodeGraph, validate: ValidateFunction): string {
  const first = sourceOf(validate, 'a root');
  const open = [first];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { str } = next.validateName;
    if (graph.has(str)) continue;
    const uses: string[] = [];
    graph.set(str, { text: next.validateCode, isFunction: true, uses });
    for (const { str: name, value } of Object.values(next.scopeValues).flatMap((names) => [...names])) {
      uses.push(name);
      if (value.code !== undefined) {
        graph.set(name, { text: `const ${name} = ${value.code};`, isFunction: false, uses: [] });
        continue;
      }
      // Either the function referred to or, where that was still being compiled, a holder of it.
      const target = sourceOf(
        typeof value.ref === 'function' ? value.ref : (value.ref as SchemaHolder).validate,
        name,
      );
      const targetName = target.validateName.str;
      if (typeof value.ref !== 'function') {
        graph.set(name, {
          text: `const ${name} = { validate: ${targetName} };`,
          isFunction: false,
          uses: [targetName],
        });
      }
      open.push(target);
    }
  }
  return first.validateName.str;
}

interface SchemaHolder {
  readonly validate?: unknown;
}

/** Names of all functions that the given ones call at any depth, themselves included. */
function reachableFunctions(graph: CodeGraph, roots: Iterable<string>): Set<string> {
  const seen = new Set<string>();
  const open = [...roots];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(graph.get(next)?.uses ?? []));
  }
  return new Set([...seen].filter((name) => graph.get(name)?.isFunction));
}

/** Functions that more than one of the groups of roots needs. What such a function calls is shared as well. */
export function sharedFunctions(graph: CodeGraph, groups: readonly Iterable<string>[]): Set<string> {
  const count = new Map<string, number>();
  for (const group of groups) {
    for (const name of reachableFunctions(graph, group)) count.set(name, (count.get(name) ?? 0) + 1);
  }
  return new Set([...count].filter(([, uses]) => uses > 1).map(([name]) => name));
}

export interface ModulePart {
  /** Declarations, in the order in which they were compiled. */
  readonly text: string;
  /** Names that the text uses and does not declare. */
  readonly imports: readonly string[];
}

/** The code of the given functions and of all that they need, without the functions of `elsewhere`. */
export function modulePart(
  graph: CodeGraph,
  roots: Iterable<string>,
  elsewhere: ReadonlySet<string>,
): ModulePart {
  const declared = new Set<string>();
  const imports = new Set<string>();
  const open = [...roots];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (elsewhere.has(next)) imports.add(next);
    else if (!declared.has(next)) {
      declared.add(next);
      open.push(...(graph.get(next)?.uses ?? []));
    }
  }
  const text = [...graph]
    .filter(([name]) => declared.has(name))
    .map(([, declaration]) => declaration.text)
    .join('\n');
  return { text, imports: [...imports].sort() };
}
