import { STATUS_CODES } from 'node:http';
import type { Bundle } from './bundle.ts';
import type { Contract } from './contracts.ts';
import {
  type CatalogueEntry,
  ContractError,
  type Document,
  type OperationObject,
  operationObjects,
  type Response,
  resolveParameter,
} from './document.ts';

/** The codes that one operation can give: its own and those of its kind, without repetition, in a fixed order. */
function codesOf(
  { document, operation }: { document: Document; operation: OperationObject },
  contract: Contract,
  open: boolean,
): string[] {
  const common = contract.commonErrors;
  const hasParameters = (operation.parameters ?? [])
    .map((parameter) => resolveParameter(document, parameter))
    .some((parameter) => parameter.in === 'path' || parameter.in === 'query');
  return [
    ...new Set([
      ...(open ? [] : common.withCredentials),
      ...(hasParameters ? common.withParameters : []),
      ...(operation.requestBody === undefined ? [] : common.withBody),
      ...(operation['x-errors'] ?? []),
      ...common.always,
    ]),
  ];
}

/** The documented refusal of one status: a sentence, the schema `Error`, one example per code. */
function errorResponse(status: number, codes: readonly (readonly [string, CatalogueEntry])[]): Response {
  const examples = Object.fromEntries(
    codes.map(([code, { message, wire_code }]) => [
      code,
      { value: { error: message, ...(wire_code === false ? {} : { code }) } },
    ]),
  );
  const names = codes.map(([code]) => `\`${code}\``).join(', ');
  return {
    description: `${STATUS_CODES[status] ?? 'Refused'}: ${names}.`,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
  };
}

/**
 * Writes out what `x-errors` stands for: every 4xx and 5xx response of every operation, from the catalogue.
 * Changes the document in place. Throws ContractError on a code that the catalogue does not have.
 */
export function expandErrors({ document, catalogue }: Bundle, contract: Contract): void {
  const problems: string[] = [];
  for (const { operation, pointer, kind } of operationObjects(document)) {
    if (kind === 'webhook') continue;
    const open = (operation.security ?? document.security).length === 0;
    const byStatus = new Map<number, [string, CatalogueEntry][]>();
    for (const code of codesOf({ document, operation }, contract, open)) {
      const entry = catalogue[code];
      if (entry === undefined) {
        problems.push(`${pointer}: the catalogue has no code \`${code}\``);
        continue;
      }
      byStatus.set(entry.status, [...(byStatus.get(entry.status) ?? []), [code, entry]]);
    }
    const responses = { ...operation.responses };
    for (const [status, codes] of byStatus) {
      if (responses[status] !== undefined) {
        problems.push(`${pointer}: ${status} stands both in \`responses\` and in \`x-errors\``);
      }
      responses[status] = errorResponse(status, codes);
    }
    // Integer-like keys are enumerated in ascending order, whatever the order of insertion.
    operation.responses = responses;
    delete operation['x-errors'];
  }
  if (problems.length > 0) throw new ContractError('the errors of the contract do not add up:', problems);
}
