import { join, relative } from 'node:path';
import type { Contract } from './contracts.ts';
import type { Operation } from './read-operations.ts';

/** Where the handler of an operation stands, relative to the root. */
export function handlerPath(contract: Contract, operation: Operation): string {
  const folder = contract.handlersByTag ? join(contract.handlers, operation.tag) : contract.handlers;
  return join(folder, `${operation.id}.ts`);
}

/** An import specifier from a folder to a file, both relative to the root. */
export function specifier(fromFolder: string, file: string): string {
  const path = relative(fromFolder, file);
  return path.startsWith('.') ? path : `./${path}`;
}
