import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { root, sourceFiles } from './source-files.ts';

/** Every pattern of the program as `/source/flags`, with the files that contain it. */
export interface CollectedPatterns {
  readonly patterns: ReadonlyMap<string, readonly string[]>;
  /** `new RegExp(…)` with an argument that is computed: `file: code`. */
  readonly computed: readonly string[];
}

type SyntaxNode = Readonly<Record<string, unknown>> & { readonly type?: string };

/** The validators that are generated contain the patterns of these documents. */
const documents = ['openapi/openapi.json', 'openapi/control-plane.json'];
const runtimes = ['src/generated/validator-runtime.js', 'src/sandbox/generated/validator-runtime.js'];

export function collectPatterns(): CollectedPatterns {
  const patterns = new Map<string, Set<string>>();
  const computed: string[] = [];
  const add = (source: string, flags: string, file: string) => {
    const key = String(new RegExp(source, flags));
    patterns.set(key, (patterns.get(key) ?? new Set()).add(file));
  };
  const files = [
    ...sourceFiles('src/**/*.ts', 'src/**/*.tsx'),
    ...runtimes.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') })),
  ];
  for (const { path, text } of files) {
    // Most files have no pattern; a slash after a space or a bracket is in all that do.
    if (!/[\s([{:,=!&|?]\/|RegExp/.test(text)) continue;
    visit(parseSync(path, text).program as unknown as SyntaxNode, (node) => {
      const { regex } = node as { regex?: { pattern: string; flags: string } | null };
      if (node.type === 'Literal' && regex) add(regex.pattern, regex.flags, path);
      const constructed = constructedPattern(node);
      if (constructed === undefined) return;
      if ('source' in constructed) add(constructed.source, constructed.flags, path);
      else computed.push(`${path}: ${text.slice(constructed.start, constructed.end)}`);
    });
  }
  for (const path of documents) {
    visit(JSON.parse(readFileSync(join(root, path), 'utf8')) as SyntaxNode, ({ pattern }) => {
      // Ajv compiles patterns with this flag.
      if (typeof pattern === 'string') add(pattern, 'u', path);
    });
  }
  return { patterns: new Map([...patterns].map(([key, paths]) => [key, [...paths]])), computed };
}

function constructedPattern(
  node: SyntaxNode,
): { source: string; flags: string } | { start: number; end: number } | undefined {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return undefined;
  if ((node.callee as SyntaxNode).name !== 'RegExp') return undefined;
  const [source, flags] = (node.arguments as SyntaxNode[]).map(({ value }) => value);
  if (typeof source === 'string') return { source, flags: typeof flags === 'string' ? flags : '' };
  return { start: node.start as number, end: node.end as number };
}

function visit(node: unknown, see: (node: SyntaxNode) => void): void {
  if (Array.isArray(node)) {
    for (const item of node) visit(item, see);
  } else if (typeof node === 'object' && node !== null) {
    see(node as SyntaxNode);
    for (const value of Object.values(node)) if (typeof value === 'object') visit(value, see);
  }
}
