import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Contract } from './contracts.ts';
import { HEADER_START } from './document.ts';
import type { Generated } from './generate.ts';
import { missingHandlers } from './scaffold-handler.ts';

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function filesBelow(root: string, folder: string): string[] {
  try {
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .sort();
  } catch {
    return [];
  }
}

/** Returns files of an earlier run in the generated folder that are no longer generated. */
function staleFiles(contract: Contract, root: string, { files }: Generated): string[] {
  return filesBelow(root, contract.generated).filter(
    (path) => !files.has(path) && read(join(root, path))?.startsWith(HEADER_START) === true,
  );
}

/**
 * Returns the differences between the generated content and the files on disk, one line per file. Empty when up to
 * date.
 */
export function findDrift(contract: Contract, root: string, generated: Generated): string[] {
  const drift = [...generated.files].flatMap(([path, content]) => {
    const current = read(join(root, path));
    if (current === content) return [];
    return [`${path}: ${current === undefined ? 'missing' : 'differs from the contract'}`];
  });
  return [
    ...drift,
    ...staleFiles(contract, root, generated).map((path) => `${path}: no longer generated`),
    ...missingHandlers(contract, root, generated.operations).map(({ id }) => `${id}: no handler`),
  ];
}

/** Writes the generated files that have changed, each atomically. Returns their paths. */
export function writeOutput(contract: Contract, root: string, generated: Generated): string[] {
  const changed: string[] = [];
  for (const [path, content] of generated.files) {
    const target = join(root, path);
    if (read(target) === content) continue;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(`${target}.new`, content);
    renameSync(`${target}.new`, target);
    changed.push(path);
  }
  for (const path of staleFiles(contract, root, generated)) {
    rmSync(join(root, path));
    changed.push(path);
  }
  return changed;
}
