import { type Contract, handlerPath, specifier } from './contracts.ts';
import type { Document } from './document.ts';
import { header } from './header.ts';
import type { Operation } from './read-operations.ts';

/**
 * `registry.ts`: operationId -> handler file. The compiler rejects a missing file, a `run` with a wrong type, and a
 * `run` whose plan differs from what its `prepare` returns.
 */
export function emitRegistry(
  contract: Contract,
  document: Document,
  operations: readonly Operation[],
): string {
  const imports = operations.map(
    (operation) =>
      `import * as ${operation.id} from '${specifier(contract.generated, handlerPath(contract, operation))}';\n`,
  );
  return [
    header(document),
    ...imports,
    `import type { Handlers } from '${specifier(contract.generated, contract.handlerType)}';\n\n`,
    'const files = {\n',
    ...operations.map(({ id }) => `  ${id},\n`),
    '};\n\n',
    'export const registry: Handlers<typeof files> = files;\n',
  ].join('');
}
