import type { Document, OpenAPIBackend } from 'openapi-backend';
import { ApiError, notImplemented } from '../errors.ts';
import type { Brand } from './brand.ts';
import { type CompiledResult, openCompiledBackend } from './compiled-backend.ts';
import { clientFault } from './oauth-clients.ts';
import { type OperationHandlers, operationOf, type RequestState } from './request-state.ts';
import { createRouteIndex, type Operation, type RequestValidators } from './route-index.ts';
import { bodyFault, parametersFault } from './validation-issues.ts';

/** The contract at run time. */
export interface Contract {
  /** Finds the operation. Called before authentication, because the operation determines the required credentials. */
  readonly match: (state: Pick<RequestState, 'method' | 'path'>) => RequestState['route'];
  /**
   * Its `handleRequest` checks credentials, validates the request, and calls the handler of the operation. Throws
   * `not_found`, `method_not_allowed`, `unsupported_media_type`, `invalid_data`.
   */
  readonly api: OpenAPIBackend;
}

export interface ContractOptions {
  /** The OpenAPI document, see `generated/definition.ts`. It decides which security schemes an operation accepts. */
  readonly definition: Document;
  /** The served operations: rows of the generated table. */
  readonly operations: readonly Operation[];
  readonly validators: Readonly<Record<string, RequestValidators>>;
  readonly handlers: OperationHandlers;
  /** An additional check of a valid request before its handler. Default: none. */
  readonly preOperationHandler?: ((context: unknown, state: RequestState) => Promise<void>) | undefined;
  /** Translates parameters and bodies of branded clients. */
  readonly brand?: Pick<Brand, 'readParameter' | 'readBody'> | undefined;
}

/**
 * Builds the contract over openapi-backend, which is called once per request and runs its steps: match, security,
 * validation, `preOperationHandler`, handler. Router and validator are in `compiled-backend.ts`.
 *
 * INVARIANT: notFound, methodNotAllowed, validationFail, unauthorizedHandler and notImplemented are all registered, so
 * every refusal has an error of the catalogue.
 */
export async function createContract(options: ContractOptions): Promise<Contract> {
  const { definition, operations, validators, brand, preOperationHandler = passed } = options;
  const routes = createRouteIndex(operations);
  const api = await openCompiledBackend({ definition, routes, validators, brand });

  api.register({
    notFound: () => {
      throw new ApiError('not_found');
    },
    methodNotAllowed: (_context, state: RequestState) => {
      const allow = routes.allowedMethods(state.path).flatMap(withHead).join(', ');
      throw new ApiError('method_not_allowed', undefined, { headers: { allow } });
    },
    validationFail: ({ validation }, state: RequestState) => {
      throw faultOf(validation, state);
    },
    unauthorizedHandler: () => {
      throw new ApiError('missing_or_invalid_token');
    },
    notImplemented: (_context, state: RequestState) => {
      throw notImplemented(operationOf(state).id);
    },
    preOperationHandler,
  });
  api.register(options.handlers);
  for (const scheme of Object.keys(definition.components?.securitySchemes ?? {})) {
    const isProven = isProvenBy[scheme];
    if (isProven === undefined) throw new Error(`the server does not know the security scheme ${scheme}`);
    api.registerSecurityHandler(scheme, (_context, state: RequestState) => isProven(state));
  }
  return {
    // CHOICE: HEAD is not in the document. RFC 9110 section 9.3.2: HEAD is GET without the content of the response.
    match: ({ method, path }) => routes.find(method === 'HEAD' ? 'GET' : method, path),
    api,
  };
}

/**
 * The security schemes of the document. Each tells whether the credentials of a request belong to it.
 *
 * NOTE: `authenticate.ts` has checked the credentials before the body was read. Here the document decides whether they
 * suffice for the operation.
 */
const isProvenBy: Readonly<Record<string, (state: RequestState) => boolean>> = {
  appCredentials: ({ app, hasAppSecret, headers }) =>
    app !== undefined && hasAppSecret && headers.authorization !== undefined,
  userToken: ({ app, userId }) => app !== undefined && userId !== undefined,
  appOrigin: ({ app, headers }) =>
    app !== undefined && headers.authorization === undefined && headers.origin !== undefined,
  oauthClient: ({ app, headers, isBodyRead }) =>
    app !== undefined && headers.authorization === undefined && isBodyRead,
};

function faultOf({ errors, invalid }: CompiledResult, state: RequestState): ApiError {
  if (invalid === 'parameters') return parametersFault(errors!);
  const fault = bodyFault(errors!);
  return operationOf(state).security === 'oauth-client' ? clientFault(state, fault) : fault;
}

async function passed(): Promise<void> {}

function withHead(method: string): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}
