import { type Contract, handlerPath, specifier } from './contracts.ts';
import type { Document } from './document.ts';
import { header } from './header.ts';
import type { Operation } from './read-operations.ts';

/** `registry.ts`: operationId -> handler. A missing handler, or one of a wrong type, does not compile. */
export function emitRegistry(
  contract: Contract,
  document: Document,
  operations: readonly Operation[],
): string {
  const imports = operations.map(
    (operation) =>
      `import { ${operation.id} } from '${specifier(contract.generated, handlerPath(contract, operation))}';\n`,
  );
  return [
    header(document),
    ...imports,
    `import type { Handler } from '${specifier(contract.generated, contract.handlerType)}';\n`,
    "import type { OperationId } from './operations.ts';\n\n",
    'export const registry: { readonly [Id in OperationId]: Handler<Id> } = {\n',
    ...operations.map(({ id }) => `  ${id},\n`),
    '};\n',
  ].join('');
}
