import { type Contract, handlerPath, specifier } from './contracts.ts';
import type { Document } from './document.ts';
import { header } from './document.ts';
import type { Operation } from './read-operations.ts';

/** Emits `registry.ts`: operationId -> handler. The compiler rejects a handler that is missing or has a wrong type. */
export function emitRegistry(
  contract: Contract,
  document: Document,
  operations: readonly Operation[],
): string {
  const modules = new Map(
    operations.map((operation) => [moduleName(operation), handlerPath(contract, operation)]),
  );
  return [
    header(document),
    ...[...modules]
      .sort(([, a], [, b]) => (a < b ? -1 : 1))
      .map(([name, path]) => `import * as ${name} from '${specifier(contract.generated, path)}';\n`),
    `import type { Handlers } from '${specifier(contract.generated, contract.handlerType)}';\n\n`,
    'export const registry: Handlers = {\n',
    ...operations.map((operation) => `  ${operation.id}: ${moduleName(operation)}.${operation.id},\n`),
    '};\n',
  ].join('');
}

function moduleName({ tag }: Operation): string {
  return tag.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
