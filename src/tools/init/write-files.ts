import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../config/make-folder.ts';
import type { TemplateFile } from './templates.ts';

/** The result for a file. */
export interface Outcome {
  readonly path: string;
  readonly state: 'written' | 'replaced' | 'unchanged';
}

/**
 * Writes files into a folder. If a file already exists with other content and `force` is not set, it writes none of
 * them and returns the existing files.
 */
export function writeFiles(
  folder: string,
  files: readonly TemplateFile[],
  { force }: { readonly force: boolean },
): { readonly outcomes: readonly Outcome[]; readonly inTheWay: readonly string[] } {
  const planned = files.map(({ path, text }) => {
    const file = join(folder, path);
    const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
    const state = before === undefined ? 'written' : before === text ? 'unchanged' : 'replaced';
    return { path, file, text, state } as const;
  });
  const inTheWay = planned.filter(({ state }) => state === 'replaced' && !force).map(({ path }) => path);
  if (inTheWay.length > 0) return { outcomes: [], inTheWay };
  for (const { file, text, state } of planned) {
    if (state === 'unchanged') continue;
    makeFolder(dirname(file));
    // A file that another process creates in the meantime is not overwritten either.
    writeFileSync(file, text, { flag: state === 'written' ? 'wx' : 'w' });
  }
  return { outcomes: planned.map(({ path, state }) => ({ path, state })), inTheWay: [] };
}
