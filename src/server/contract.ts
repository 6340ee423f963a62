import {
  type Operation as DefinedOperation,
  type Document,
  OpenAPIBackend,
  OpenAPIRouter,
  OpenAPIValidator,
  type ParsedRequest,
  type Request,
  type ValidationResult,
} from 'openapi-backend';
import { ApiError, notImplemented } from '../errors.ts';
import type { BodyShapes } from '../generated/validate-function.ts';
import { inSyncSpan } from '../observability/spans.ts';
import { clientFault } from './authenticate.ts';
import type { Brand } from './brand.ts';
import { refuseUnusedKey } from './idempotency.ts';
import { parseBody } from './parse-body.ts';
import { type OperationHandlers, operationOf, type RequestState } from './request-state.ts';
import {
  createRouteIndex,
  type Operation,
  parseQuery,
  type RequestValidators,
  type RouteIndex,
} from './route-index.ts';
import { bodyFault, parametersFault, shapeErrors } from './validation-issues.ts';

/*
 * This file gives openapi-backend a router and a validator of our own: subclasses of its exported classes that override
 * public methods.
 *
 * The classes of the package cannot serve this API. The router tries the pattern of every path, which takes 930 µs per
 * match with 188 operations; the radix index takes less than 1 µs. The validator compiles schemas at the first use of
 * an operation, 7.8 s in total. It compiles them as JSON Schema draft-07, in which 24 of them fail, because OpenAPI 3.1
 * uses 2020-12. Both classes parse each request again.
 *
 * `npm run generate` compiles the validators with Ajv (`src/generated/*-validators.js`). It also writes
 * `definition.ts`, the document without schemas: reading the whole document and resolving its references would take 220
 * ms of each start and 17 MB.
 */

interface CompiledOptions {
  readonly definition: Document;
  readonly routes: RouteIndex;
  readonly validators: Readonly<Record<string, RequestValidators>>;
  /** Translates parameters and bodies from the client's brand. */
  readonly brand?: Pick<Brand, 'readParameter' | 'readBody'> | undefined;
}

/** A request for openapi-backend, with the pipeline's state of this request. */
interface BackendRequest extends Request {
  readonly state: RequestState;
}

export function requestOf(state: RequestState): BackendRequest {
  const { method, path } = state;
  return { method, path, headers: state.headers as Request['headers'], state };
}

/** The result of a validation, and the part that is invalid. Parameters are validated first. */
interface CompiledResult extends ValidationResult<Request> {
  readonly invalid?: 'parameters' | 'body';
}

/** Creates openapi-backend for a document, with the compiled router and validator and without handlers. */
export async function openCompiledBackend(options: CompiledOptions): Promise<OpenAPIBackend> {
  const { definition } = options;
  // `quick` compiles no schemas and skips the check of the document; that check supports only OpenAPI 3.0. `strict`
  // refuses handlers of unknown operations and security schemes.
  const backend = new OpenAPIBackend({ definition, quick: true, strict: true });
  await backend.init();
  backend.router = new CompiledRouter(options);
  backend.validator = new CompiledValidator(backend.router, options);
  return backend;
}

class CompiledRouter extends OpenAPIRouter {
  readonly #routes: RouteIndex;
  readonly #operations = super.getOperations();
  readonly #byId = new Map(this.#operations.map((operation) => [operation.operationId, operation]));

  constructor({ definition, routes }: CompiledOptions) {
    super({ definition });
    this.#routes = routes;
  }

  override getOperations(): DefinedOperation[] {
    return this.#operations;
  }

  override getOperation(operationId: string): DefinedOperation | undefined {
    return this.#byId.get(operationId);
  }

  /**
   * Returns the operation that was found before the credentials were checked: it determines which credentials are
   * required.
   */
  override matchOperation({ state: { route, path } }: BackendRequest): DefinedOperation {
    const operation = this.#byId.get(route?.operation.id);
    if (operation !== undefined) return operation;
    // openapi-backend reads the first three characters of the message.
    const isKnownPath = this.#routes.allowedMethods(path).length > 0;
    throw new Error(isKnownPath ? '405-methodNotAllowed' : '404-notFound');
  }

  /** Returns the parts of the request. The query and the body are parsed only once, by the validator. */
  override parseRequest({ state }: BackendRequest): ParsedRequest {
    const { method, path, headers, route, query, body } = state;
    return { method, path, headers, params: route?.params, query, cookies: {}, requestBody: body };
  }
}

class CompiledValidator extends OpenAPIValidator {
  readonly #options: CompiledOptions;

  constructor(router: OpenAPIRouter, options: CompiledOptions) {
    super({ definition: options.definition, router, lazyCompileValidators: true });
    this.#options = options;
  }

  /**
   * Parses and validates path, query, headers and body, and stores the parsed values in the state.
   *
   * @throws ApiError where validation is impossible, for example for a body that is not JSON.
   */
  override validateRequest({ state }: BackendRequest): CompiledResult {
    return inSyncSpan({ name: 'validation', kind: 'internal' }, () => validate(state, this.#options));
  }
}

const valid: CompiledResult = { valid: true };

function validate(state: RequestState, { validators, brand }: CompiledOptions): CompiledResult {
  const operation = operationOf(state);
  const { params, body } = validators[operation.id]!;
  const query = parseQuery(state.target);
  const path = state.route!.params;
  if (brand !== undefined) {
    readParameters(path, brand);
    readParameters(query, brand);
  }
  if (!params({ path, query, headers: state.headers })) {
    return { valid: false, errors: params.errors!, invalid: 'parameters' };
  }
  refuseUnusedKey(state);
  state.query = query;
  const parsed = parseBody(operation, state.headers, state.rawBody);
  state.body = brand === undefined ? parsed : brand.readBody(parsed);
  if (body === undefined || parsed === undefined || body(state.body)) return valid;
  return { valid: false, errors: body.errors!, invalid: 'body' };
}

function readParameters(
  parameters: Record<string, string | string[]>,
  brand: Pick<Brand, 'readParameter'>,
): void {
  for (const [name, value] of Object.entries(parameters)) {
    parameters[name] = Array.isArray(value) ? value.map(brand.readParameter) : brand.readParameter(value);
  }
}

/** The API document at run time. */
interface Contract {
  /** Finds the operation. Called before authentication, because the operation determines the required credentials. */
  readonly match: (state: Pick<RequestState, 'method' | 'path'>) => RequestState['route'];
  /**
   * In `handleRequest`, checks that the authenticated credentials suit the operation, validates the request, and calls
   * the handler of the operation. Throws `not_found`, `method_not_allowed`, `unsupported_media_type`, `invalid_data`,
   * and the errors of the handlers.
   */
  readonly backend: OpenAPIBackend;
}

export interface ContractOptions {
  /**
   * The API document without its schemas (`generated/definition.ts`). It states which security schemes an operation
   * accepts.
   */
  readonly definition: Document;
  /** The served operations: rows of the generated table. */
  readonly operations: readonly Operation[];
  readonly validators: Readonly<Record<string, RequestValidators>>;
  /** Loads the shapes of bodies, with which all faults of an invalid body are found. */
  readonly bodyShapes?: (() => Promise<BodyShapes>) | undefined;
  readonly handlers: OperationHandlers;
  /** Checks a valid request before its handler runs. Default: none. */
  readonly preOperationHandler?: ((context: unknown, state: RequestState) => Promise<void>) | undefined;
  /** Translates parameters and bodies from the client's brand. */
  readonly brand?: Pick<Brand, 'readParameter' | 'readBody'> | undefined;
}

/**
 * Creates openapi-backend with the router and the validator above, and registers all handlers. It is called once per
 * request and runs these steps: match, security, validation, `preOperationHandler`, handler.
 *
 * INVARIANT: notFound, methodNotAllowed, validationFail, unauthorizedHandler and notImplemented are all registered, so
 * every refusal has an error of the catalogue.
 */
export async function createContract(options: ContractOptions): Promise<Contract> {
  const { definition, operations, validators, brand, preOperationHandler = passed } = options;
  const routes = createRouteIndex(operations);
  const backend = await openCompiledBackend({ definition, routes, validators, brand });

  backend.register({
    notFound: () => {
      throw new ApiError('not_found');
    },
    methodNotAllowed: (_context, state: RequestState) => {
      const allow = routes.allowedMethods(state.path).flatMap(withHead).join(', ');
      throw new ApiError('method_not_allowed', undefined, { headers: { allow } });
    },
    validationFail: async ({ validation }, state: RequestState) => {
      throw faultOf(validation, state, await options.bodyShapes?.());
    },
    unauthorizedHandler: () => {
      throw new ApiError('missing_or_invalid_token');
    },
    notImplemented: (_context, state: RequestState) => {
      throw notImplemented(operationOf(state).id);
    },
    preOperationHandler,
  });
  backend.register(options.handlers);
  for (const scheme of Object.keys(definition.components?.securitySchemes ?? {})) {
    const uses = usesScheme[scheme];
    if (uses === undefined) throw new Error(`the server does not know the security scheme ${scheme}`);
    backend.registerSecurityHandler(scheme, (_context, state: RequestState) => uses(state));
  }
  return {
    // CHOICE: HEAD is not in the document. RFC 9110 section 9.3.2: HEAD is GET without the content of the response.
    match: ({ method, path }) => routes.find(method === 'HEAD' ? 'GET' : method, path),
    backend,
  };
}

/**
 * The security schemes of the document. Each function returns whether the request's credentials belong to the scheme.
 *
 * NOTE: `authenticate.ts` has checked the credentials before the body was read. These functions only decide whether
 * they are of a kind that the operation accepts.
 */
const usesScheme: Readonly<Record<string, (state: RequestState) => boolean>> = {
  appCredentials: ({ app, hasAppSecret, headers }) =>
    app !== undefined && hasAppSecret && headers.authorization !== undefined,
  userToken: ({ app, userId }) => app !== undefined && userId !== undefined,
  appOrigin: ({ app, headers }) =>
    app !== undefined && headers.authorization === undefined && headers.origin !== undefined,
  oauthClient: ({ app, headers, isBodyRead }) =>
    app !== undefined && headers.authorization === undefined && isBodyRead,
};

function faultOf(
  { errors, invalid }: CompiledResult,
  state: RequestState,
  shapes: BodyShapes | undefined,
): ApiError {
  if (invalid === 'parameters') return parametersFault(errors!);
  const fault = bodyFault(errors!, state.body, (body) =>
    shapes === undefined ? [] : shapeErrors(body, operationOf(state).id, shapes),
  );
  return operationOf(state).security === 'oauth-client' ? clientFault(state, fault) : fault;
}

async function passed(): Promise<void> {}

function withHead(method: string): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}
