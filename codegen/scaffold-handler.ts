import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Contract, handlerPath, specifier } from './contracts.ts';
import type { Operation } from './read-operations.ts';

/**
 * The initial content of a handler file, which returns `not_implemented`. Afterwards the file is edited by hand;
 * operations that query external services add `prepare`.
 */
export function stubText(contract: Contract, operation: Operation): string {
  const folder = dirname(handlerPath(contract, operation));
  return [
    `import { notImplemented } from '${specifier(folder, contract.errors)}';`,
    `import type { Handler } from '${specifier(folder, contract.handlerType)}';`,
    '',
    `export const run: Handler<'${operation.id}'> = async () => {`,
    `  throw notImplemented('${operation.id}');`,
    '};',
    '',
  ].join('\n');
}

/** The missing handler files, as paths relative to the root. */
function missingHandlers(contract: Contract, root: string, operations: readonly Operation[]): string[] {
  return operations
    .map((operation) => handlerPath(contract, operation))
    .filter((path) => !existsSync(join(root, path)));
}

/** Writes a stub for each operation that has no handler file. Returns the paths written. Never overwrites. */
export function scaffoldHandlers(
  contract: Contract,
  root: string,
  operations: readonly Operation[],
): string[] {
  const absent = new Set(missingHandlers(contract, root, operations));
  for (const operation of operations) {
    const path = handlerPath(contract, operation);
    if (!absent.has(path)) continue;
    mkdirSync(join(root, dirname(path)), { recursive: true });
    // `wx` fails when the file was created in the meantime.
    writeFileSync(join(root, path), stubText(contract, operation), { flag: 'wx' });
  }
  return [...absent];
}
