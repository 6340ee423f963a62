import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Operation as BackendOperation,
  type Context,
  OpenAPIBackend,
  type Request,
} from 'openapi-backend';
import { ApiError, notImplemented } from '../errors.ts';
import { inSyncSpan } from '../observability/spans.ts';
import type { Brand } from './brand.ts';
import { type Answer, type HttpExchange, operationOf, type RunOperation } from './http-exchange.ts';
import { refuseUnusedKey } from './idempotency.ts';
import { clientFault, requireSameClient } from './oauth-clients.ts';
import { parseBody } from './parse-body.ts';
import { createRouteIndex, type Operation, parseQuery, type RequestValidators } from './route-index.ts';
import { bodyFault, parametersFault } from './validation-issues.ts';

/** The contract at run time. */
export interface Contract {
  /**
   * Finds the operation. Called before authentication, because the operation determines which credentials are
   * required.
   */
  readonly match: (exchange: Pick<HttpExchange, 'method' | 'path'>) => HttpExchange['route'];
  /**
   * Matches, parses and validates the request, then runs its operation.
   * Throws `not_found`, `method_not_allowed`, `unsupported_media_type`, `invalid_data`.
   */
  readonly handle: (exchange: HttpExchange) => Promise<Answer>;
}

export interface ContractOptions {
  readonly operations: readonly Operation[];
  readonly validators: Readonly<Record<string, RequestValidators>>;
  readonly run: RunOperation;
  /** Throws for requests that match the contract but are refused, such as text containing U+0000. */
  readonly checkInput?: ((exchange: HttpExchange) => void) | undefined;
  /** Translates parameters and bodies of branded clients. */
  readonly brand?: Pick<Brand, 'readParameter' | 'readBody'> | undefined;
}

// The security scheme with which openapi-backend confirms that authentication has passed.
const CREDENTIALS = 'credentials';

export const LARGE_BODY_BYTES = 65_536;

/**
 * Builds the contract over openapi-backend, which is called once per request and runs its steps: match, security,
 * validation, handler. Two of the steps are ours:
 * - the match returns the operation that the radix index of `route-index.ts` found before credentials were checked;
 * - the validation parses the request and calls the precompiled validators of `generated/`.
 *
 * Its own parsing of the request is skipped as well. Its router tries every path, it parses each request three times,
 * and its validators are draft-07 and compiled at start. With these replaced, a request took 2.6 to 10.5 times less
 * CPU (docs/decisions/0016).
 *
 * INVARIANT: notFound, methodNotAllowed, validationFail, unauthorizedHandler and notImplemented are all registered;
 * openapi-backend lets a request *through* if one of them is missing.
 */
export async function createContract(options: ContractOptions): Promise<Contract> {
  const { operations, validators, run } = options;
  const routes = createRouteIndex(operations);
  // `quick` skips its check of the document, which supports only OpenAPI 3.0.
  const api = new OpenAPIBackend({ definition: slimDefinition, quick: true, strict: true });
  await api.init();

  const known = operations.map(toBackendOperation);
  const byId = new Map(known.map((operation) => [operation.operationId, operation]));
  api.router.getOperations = () => known;
  api.router.getOperation = (id) => byId.get(id);
  api.router.matchOperation = ((request: unknown) => {
    const exchange = request as HttpExchange;
    const operation = byId.get(exchange.route?.operation.id);
    if (operation !== undefined) return operation;
    // openapi-backend reads only the first three characters of the message.
    const isKnownPath = routes.allowedMethods(exchange.path).length > 0;
    throw new Error(isKnownPath ? '405-methodNotAllowed' : '404-notFound');
  }) as typeof api.router.matchOperation;
  // Path and query are already parsed in the exchange.
  api.router.parseRequest = ((request: Request) => request) as unknown as typeof api.router.parseRequest;
  api.validator.validateRequest = ((request: unknown) => {
    const exchange = request as HttpExchange;
    const refusal = inSyncSpan({ name: 'validation', kind: 'internal' }, () =>
      validate(exchange, validators, options.brand),
    );
    return refusal === undefined ? { valid: true } : { valid: false, errors: [refusal] };
  }) as unknown as typeof api.validator.validateRequest;

  api.register({
    notFound: () => {
      throw new ApiError('not_found');
    },
    methodNotAllowed: (_context: Context, exchange: HttpExchange) => {
      const allow = routes.allowedMethods(exchange.path).flatMap(withHead).join(', ');
      throw new ApiError('method_not_allowed', undefined, { headers: { allow } });
    },
    validationFail: (context: Context) => {
      throw context.validation.errors?.[0];
    },
    unauthorizedHandler: () => {
      throw new ApiError('missing_or_invalid_token');
    },
    notImplemented: (_context: Context, exchange: HttpExchange) => {
      throw notImplemented(operationOf(exchange).id);
    },
  });
  const runChecked = (exchange: HttpExchange): Promise<Answer> => {
    options.checkInput?.(exchange);
    if (operationOf(exchange).security === 'oauth-client') requireSameClient(exchange);
    return run(exchange);
  };
  const runInTurn = (_context: Context, exchange: HttpExchange): Promise<Answer> =>
    // Parsing and validating a large body take as long as a whole request, and what follows may too.
    exchange.rawBody.length > LARGE_BODY_BYTES
      ? nextTurn().then(() => runChecked(exchange))
      : runChecked(exchange);
  for (const { id } of operations) api.register(id, runInTurn);
  api.registerSecurityHandler(
    CREDENTIALS,
    (_context: Context, exchange: HttpExchange) => exchange.app !== undefined,
  );

  return {
    // CHOICE: not published; RFC 9110 section 9.3.2: HEAD is GET without the content of the response.
    match: ({ method, path }) => routes.find(method === 'HEAD' ? 'GET' : method, path),
    handle: (exchange) => api.handleRequest(exchange as unknown as Request, exchange),
  };
}

/** Parses and validates path, query, headers and body, and stores the parsed values in the exchange. */
function validate(
  exchange: HttpExchange,
  validators: ContractOptions['validators'],
  brand: ContractOptions['brand'],
): ApiError | undefined {
  const operation = operationOf(exchange);
  const { params, body } = validators[operation.id]!;
  const query = parseQuery(exchange.target);
  const path = exchange.route!.params;
  if (brand !== undefined) {
    readParameters(path, brand);
    readParameters(query, brand);
  }
  if (!params({ path, query, headers: exchange.headers })) return parametersFault(params.errors!);
  refuseUnusedKey(exchange);
  exchange.query = query;
  const parsed = parseBody(operation, exchange.headers, exchange.rawBody);
  exchange.body = brand === undefined ? parsed : brand.readBody(parsed);
  if (body !== undefined && parsed !== undefined && !body(exchange.body)) {
    const fault = bodyFault(body.errors!);
    return operation.security === 'oauth-client' ? clientFault(exchange, fault) : fault;
  }
  return undefined;
}

function readParameters(
  parameters: Record<string, string | string[]>,
  brand: Pick<Brand, 'readParameter'>,
): void {
  for (const [name, value] of Object.entries(parameters)) {
    parameters[name] = Array.isArray(value) ? value.map(brand.readParameter) : brand.readParameter(value);
  }
}

function toBackendOperation({ id, method, path, security }: Operation): BackendOperation {
  return {
    operationId: id,
    method: method.toLowerCase(),
    path,
    responses: {},
    security: security === 'none' ? [] : [{ [CREDENTIALS]: [] }],
  } as unknown as BackendOperation;
}

function withHead(method: string): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}

/**
 * The part of the document that openapi-backend needs. Operations are left out, since its router is asked for none, and
 * it copies and searches the document at every start.
 */
const slimDefinition = {
  openapi: '3.1.0',
  info: { title: 'operations', version: '1' },
  paths: {},
  components: { securitySchemes: { [CREDENTIALS]: { type: 'http', scheme: 'basic' } } },
} as ConstructorParameters<typeof OpenAPIBackend>[0]['definition'];
