import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Document, OpenAPIBackend } from 'openapi-backend';
import { ApiError, notImplemented } from '../errors.ts';
import type { Brand } from './brand.ts';
import { type CompiledResult, openCompiledBackend } from './compiled-backend.ts';
import { type HttpExchange, type OperationHandlers, operationOf } from './http-exchange.ts';
import { clientFault, requireSameClient } from './oauth-clients.ts';
import { createRouteIndex, type Operation, type RequestValidators } from './route-index.ts';
import { bodyFault, parametersFault } from './validation-issues.ts';

/** The contract at run time. */
export interface Contract {
  /**
   * Finds the operation. Called before authentication, because the operation determines which credentials are
   * required.
   */
  readonly match: (exchange: Pick<HttpExchange, 'method' | 'path'>) => HttpExchange['route'];
  /**
   * Its `handleRequest` checks credentials and validates the request, then calls the handler of the operation.
   * Throws `not_found`, `method_not_allowed`, `unsupported_media_type`, `invalid_data`.
   */
  readonly api: OpenAPIBackend;
}

export interface ContractOptions {
  /** The OpenAPI document, see `generated/definition.ts`. It decides which security schemes an operation accepts. */
  readonly definition: Document;
  /** The operations that are served, rows of the generated table. */
  readonly operations: readonly Operation[];
  readonly validators: Readonly<Record<string, RequestValidators>>;
  readonly handlers: OperationHandlers;
  /** Throws for requests that match the contract but are refused, such as text containing U+0000. */
  readonly checkInput?: ((exchange: HttpExchange) => void) | undefined;
  /** What a valid request passes before its handler. Default: nothing. */
  readonly prepare?: ((exchange: HttpExchange) => Promise<void>) | undefined;
  /** Translates parameters and bodies of branded clients. */
  readonly brand?: Pick<Brand, 'readParameter' | 'readBody'> | undefined;
}

export const LARGE_BODY_BYTES = 65_536;

/**
 * Builds the contract over openapi-backend, which is called once per request and runs its steps: match, security,
 * validation, `preOperationHandler`, handler. Its router and validator are those of `compiled-backend.ts`.
 *
 * INVARIANT: notFound, methodNotAllowed, validationFail, unauthorizedHandler and notImplemented are all registered, so
 * that each refusal has its error of the catalogue.
 */
export async function createContract(options: ContractOptions): Promise<Contract> {
  const { definition, operations, validators, brand, checkInput, prepare } = options;
  const routes = createRouteIndex(operations);
  const api = await openCompiledBackend({ definition, routes, validators, brand });

  api.register({
    notFound: () => {
      throw new ApiError('not_found');
    },
    methodNotAllowed: (_context, exchange: HttpExchange) => {
      const allow = routes.allowedMethods(exchange.path).flatMap(withHead).join(', ');
      throw new ApiError('method_not_allowed', undefined, { headers: { allow } });
    },
    validationFail: ({ validation }, exchange: HttpExchange) => {
      throw faultOf(validation, exchange);
    },
    unauthorizedHandler: () => {
      throw new ApiError('missing_or_invalid_token');
    },
    notImplemented: (_context, exchange: HttpExchange) => {
      throw notImplemented(operationOf(exchange).id);
    },
    async preOperationHandler(_context, exchange: HttpExchange) {
      // Parsing and validating a large body take as long as a whole request, and what follows may too.
      if (exchange.rawBody.length > LARGE_BODY_BYTES) await nextTurn();
      checkInput?.(exchange);
      if (operationOf(exchange).security === 'oauth-client') requireSameClient(exchange);
      await prepare?.(exchange);
    },
  });
  api.register(options.handlers);
  for (const scheme of Object.keys(definition.components?.securitySchemes ?? {})) {
    const isProven = isProvenBy[scheme];
    if (isProven === undefined) throw new Error(`the server does not know the security scheme ${scheme}`);
    api.registerSecurityHandler(scheme, (_context, exchange: HttpExchange) => isProven(exchange));
  }
  return {
    // CHOICE: not published; RFC 9110 section 9.3.2: HEAD is GET without the content of the response.
    match: ({ method, path }) => routes.find(method === 'HEAD' ? 'GET' : method, path),
    api,
  };
}

/**
 * The security schemes of the document, and whether the credentials of an exchange are of that scheme.
 *
 * NOTE: `authenticate.ts` has checked the credentials before the body was read. Here the document decides whether they
 * suffice for the operation.
 */
const isProvenBy: Readonly<Record<string, (exchange: HttpExchange) => boolean>> = {
  appCredentials: ({ app, hasAppSecret, headers }) =>
    app !== undefined && hasAppSecret && headers.authorization !== undefined,
  userToken: ({ app, userId }) => app !== undefined && userId !== undefined,
  appOrigin: ({ app, headers }) =>
    app !== undefined && headers.authorization === undefined && headers.origin !== undefined,
  oauthClient: ({ app, headers, isBodyRead }) =>
    app !== undefined && headers.authorization === undefined && isBodyRead,
};

function faultOf({ errors, invalid }: CompiledResult, exchange: HttpExchange): ApiError {
  if (invalid === 'parameters') return parametersFault(errors!);
  const fault = bodyFault(errors!);
  return operationOf(exchange).security === 'oauth-client' ? clientFault(exchange, fault) : fault;
}

function withHead(method: string): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}
