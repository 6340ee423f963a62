import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** The project's root folder. */
export const root = join(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** Relative to the root. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  /** A path relative to the root for files of ours, else the package's name as written. */
  readonly target: string;
  readonly isOurs: boolean;
  /** Gone at run time. */
  readonly isTypeOnly: boolean;
}

/** Files that people write, matching `patterns`. */
export function sourceFiles(...patterns: string[]): SourceFile[] {
  return globSync(patterns, { cwd: root, exclude: ['**/node_modules'] })
    .filter((path) => !/\/(generated|node_modules|golden)\//.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

// `import … from 'x'`, `export … from 'x'`, `import 'x'` at the beginning of a line; `import('x')` anywhere.
const statement = /^(import|export)\s+(type\s)?(?:[^'"`;()]*?\sfrom\s+)?'([^']+)'/gm;
const call = /\bimport\('([^']+)'\)/g;

export function importsOf(file: SourceFile): Import[] {
  const text = withoutComments(file.text);
  const found = [
    ...[...text.matchAll(statement)].map(([, , type, target = '']) => ({
      target,
      isTypeOnly: type !== undefined,
    })),
    ...[...text.matchAll(call)].map((match) => ({
      target: match[1] ?? '',
      // `typeof import('x')` and `import('x').Type` are types, `await import('x')` is not.
      isTypeOnly: /typeof $/.test(text.slice(0, match.index)) || text[match.index + match[0].length] === '.',
    })),
  ];
  return found.map(({ target, isTypeOnly }) => {
    const isOurs = target.startsWith('.');
    return { target: isOurs ? normalize(join(dirname(file.path), target)) : target, isOurs, isTypeOnly };
  });
}

/** The code without comments. Except in URLs, comment marks inside strings are too rare here to be handled. */
export function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`/])\/\/.*$/gm, '$1');
}
