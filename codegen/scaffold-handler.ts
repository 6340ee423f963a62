import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Contract, handlerPath, specifier } from './contracts.ts';
import type { Operation } from './read-operations.ts';

/** Returns the source of a handler that throws `not_implemented`, to be edited by hand. */
export function stubText({ id }: Operation): string {
  return `\nexport const ${id}: Handler<'${id}'> = async () => {\n  throw notImplemented('${id}');\n};\n`;
}

/** Returns the operations that no file exports. */
export function missingHandlers(
  contract: Contract,
  root: string,
  operations: readonly Operation[],
): Operation[] {
  return operations.filter((operation) => {
    const text = read(join(root, handlerPath(contract, operation)));
    return !new RegExp(`^export (const|async function|function) ${operation.id}\\b`, 'm').test(text);
  });
}

/**
 * Appends a stub for each operation without a handler to the file of its tag. Returns the ids of these operations.
 * Changes nothing else.
 */
export function scaffoldHandlers(
  contract: Contract,
  root: string,
  operations: readonly Operation[],
): string[] {
  const missing = missingHandlers(contract, root, operations);
  for (const operation of missing) {
    const path = join(root, handlerPath(contract, operation));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, withImports(contract, read(path)) + stubText(operation));
  }
  return missing.map(({ id }) => id);
}

/** Returns the text of a file with the imports that a stub needs. */
function withImports(contract: Contract, text: string): string {
  const lines = [
    [`{ notImplemented }`, specifier(contract.handlers, contract.errors)],
    [`type { Handler }`, specifier(contract.handlers, contract.handlerType)],
  ]
    .filter(([names = '']) => !new RegExp(`import .*\\b${/\w+(?= \})/.exec(names)![0]}\\b`).test(text))
    .map(([names, from]) => `import ${names} from '${from}';\n`);
  return lines.join('') + text;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
