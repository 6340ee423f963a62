import { STATUS_CODES } from 'node:http';
import type { Bundle } from '../bundle.ts';
import type { Contract } from '../contracts.ts';
import {
  type CatalogueEntry,
  ContractError,
  type Document,
  type OperationObject,
  operationObjects,
  type Response,
  resolveParameter,
} from '../document.ts';

/**
 * Returns the error codes of an operation, without duplicates and in a fixed order: the common codes and its
 * `x-errors`.
 */
function codesOf(
  { document, operation }: { document: Document; operation: OperationObject },
  contract: Contract,
): string[] {
  const common = contract.commonErrors;
  const hasParameters = (operation.parameters ?? [])
    .map((parameter) => resolveParameter(document, parameter))
    .some((parameter) => parameter.in === 'path' || parameter.in === 'query');
  return [
    ...new Set([
      ...(isOpen(document, operation) ? [] : common.withCredentials),
      ...(isOauthClient(operation) ? common.ofOauthClients : []),
      ...(hasParameters ? common.withParameters : []),
      ...(operation.requestBody === undefined ? [] : common.withBody),
      ...(operation['x-errors'] ?? []),
      ...common.always,
    ]),
  ];
}

/** Returns whether an operation requires none of the usual credentials. */
function isOpen(document: Document, operation: OperationObject): boolean {
  return (operation.security ?? document.security).length === 0 || isOauthClient(operation);
}

function isOauthClient({ security = [] }: OperationObject): boolean {
  return security.some((requirement) => 'oauthClient' in requirement);
}

/** Returns the example of an error response. For OAuth clients, `error` contains the code of RFC 6749, section 5.2. */
function exampleOf(code: string, { message, wire_code, oauth_error }: CatalogueEntry, isOauth: boolean) {
  if (isOauth && oauth_error !== undefined) return { error: oauth_error, error_description: message, code };
  return { error: message, ...(wire_code === false ? {} : { code }) };
}

const retryAfter = {
  description: 'The seconds to wait before the request is sent again.',
  schema: { type: 'integer', minimum: 0 },
};

/** Returns the error response for one status: description, schema, and one example per code. */
function errorResponse(
  status: number,
  codes: readonly (readonly [string, CatalogueEntry])[],
  isOauth: boolean,
): Response {
  const examples = Object.fromEntries(
    codes.map(([code, entry]) => [code, { value: exampleOf(code, entry, isOauth) }]),
  );
  const schema = isOauth ? 'OAuthError' : 'Error';
  const names = codes.map(([code]) => `\`${code}\``).join(', ');
  return {
    ...(status === 429 || status === 503 ? { headers: { 'Retry-After': retryAfter } } : {}),
    description: `${STATUS_CODES[status] ?? 'Refused'}: ${names}.`,
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, examples } },
  };
}

/**
 * Expands `x-errors` into the 4xx and 5xx responses of every operation, with texts from the catalogue. Changes the
 * document in place.
 *
 * @throws ContractError for a code that is not in the catalogue.
 */
export function expandErrors({ document, catalogue }: Bundle, contract: Contract): void {
  const problems: string[] = [];
  for (const { operation, pointer, kind } of operationObjects(document)) {
    if (kind === 'webhook') continue;
    const byStatus = new Map<number, [string, CatalogueEntry][]>();
    for (const code of codesOf({ document, operation }, contract)) {
      const entry = catalogue[code];
      if (entry === undefined) {
        problems.push(`${pointer}: expected a code of the catalogue, got \`${code}\``);
        continue;
      }
      byStatus.set(entry.status, [...(byStatus.get(entry.status) ?? []), [code, entry]]);
    }
    const responses = { ...operation.responses };
    for (const [status, codes] of byStatus) {
      if (responses[status] !== undefined) {
        problems.push(`${pointer}: ${status} is declared both in \`responses\` and through \`x-errors\``);
      }
      responses[status] = errorResponse(status, codes, isOauthClient(operation));
    }
    // JavaScript enumerates integer-like keys in ascending order, so the statuses need no sorting.
    operation.responses = responses;
    delete operation['x-errors'];
  }
  if (problems.length > 0) throw new ContractError('the errors of the contract are inconsistent:', problems);
}
