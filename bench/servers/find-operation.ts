import type { IncomingMessage } from 'node:http';
import createRouter from 'find-my-way';
import type { OperationDescriptor } from '../../src/generated/operations.ts';
import type { Found } from './bare-answer.ts';
import { allOperations, colonPath } from './contract-facts.ts';

/** A radix router of all operations of the contract. */
export function operationFinder(): (request: IncomingMessage) => Found | undefined {
  const router = createRouter();
  for (const operation of allOperations) {
    router.on(operation.method, colonPath(operation.path), () => undefined, operation);
  }
  return ({ method = 'GET', url = '/' }) => {
    const found = router.find(method as 'GET', url);
    if (found === null) return undefined;
    return { operation: found.store as OperationDescriptor, path: found.params as Record<string, string> };
  };
}
