import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import express, { type Express } from 'express';
import { ApiError } from '../errors.ts';
import { definition } from '../generated/definition.ts';
import { operations } from '../generated/operations.ts';
import { requestValidators } from '../generated/request-validators.js';
import { createBrand } from './brand.ts';
import { answerError } from './error-response.ts';
import type { Answer } from './http-exchange.ts';
import { refuseNul } from './parse-body.ts';
import { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts';
import type { RateLimitOptions } from './rate-limit.ts';
import {
  compressed,
  createReferencePages,
  type FindPage,
  type FindReferencePage,
  isReferencePath,
  type Page,
  type ReferenceOptions,
} from './reference-pages.ts';
import type { Messages } from './server.ts';
import { createTransportGuard } from './transport-guards.ts';

/** A path prefix that is served by another pipeline. */
export interface Mount {
  /** Ends with a slash: `/_sandbox/`. */
  readonly prefix: string;
  readonly handle: Pipeline;
}

export interface App {
  readonly handler: RequestListener;
  /** Of which the server makes its requests and responses. */
  readonly messages: Messages;
}

export interface AppOptions
  extends Omit<
    PipelineOptions,
    'definition' | 'operations' | 'validators' | 'brand' | 'rateLimiter' | 'checkInput'
  > {
  /** The brand that clients use instead of `service`. */
  readonly prefix: string;
  readonly rateLimit?: RateLimitOptions | undefined;
  /** The folder of `package.json`; its `openapi/` contains the contract. */
  readonly packageRoot: string;
  readonly mounts?: readonly Mount[];
  /** Further static pages. They come before `mounts`. */
  readonly findPage?: FindPage | undefined;
  readonly reference?: ReferenceOptions | undefined;
}

const everyOperation = Object.values(operations);

/**
 * The whole application: every operation of the contract, the document at `/openapi.json` and the reference at
 * `/docs`.
 */
export async function createApp(options: AppOptions): Promise<App> {
  const brand = createBrand(options.prefix);
  const rateLimiter = await rateLimiterOf(options.rateLimit);
  const pipeline = await createPipeline({
    ...options,
    definition,
    operations: everyOperation,
    validators: requestValidators,
    checkInput: refuseNul,
    brand,
    rateLimiter,
  });
  const findReferencePage = createReferencePages(options.packageRoot, brand, options.reference);
  const guard = createTransportGuard(options.transport);
  const mounts = options.mounts ?? [];

  const handle = (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = pathOf(request);
    if (path.startsWith('/v1/') || path.startsWith('/api/')) return pipeline(request, response);
    const ownPage = options.findPage?.(path);
    if (ownPage !== undefined) return servePage(request, response, ownPage);
    for (const mount of mounts) {
      if (path.startsWith(mount.prefix)) return mount.handle(request, response);
    }
    return isReferencePath(path) ? serveReference(request, response, path) : pipeline(request, response);
  };

  const serveReference = async (
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
  ): Promise<void> => {
    const page = await findPageSafely(findReferencePage, path, options);
    if (page === undefined) return pipeline(request, response);
    // The largest pages that anybody can ask for.
    const admit: Page['admit'] = (caller) => {
      rateLimiter?.countPage(caller.remoteAddress, page.content.length);
      page.admit?.(caller);
    };
    return servePage(request, response, page, admit);
  };

  const servePage = async (
    request: IncomingMessage,
    response: ServerResponse,
    page: Page,
    admit = page.admit,
  ): Promise<void> => {
    const id = options.newRequestId();
    try {
      guard.scheme(request);
      admit?.({ headers: request.headers, remoteAddress: guard.clientAddress(request) });
      requireRead(request);
      await sendPage(request, response, page, id);
    } catch (error) {
      sendError(response, answerError(error, { id }, options.log), id);
    }
  };

  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  // In any other environment express sends the stack trace of an error to the caller.
  app.set('env', 'production');
  // A single middleware, because express tries its routes one by one.
  app.use(handle);
  return {
    messages: messagesOf(app),
    handler: (request, response) =>
      isPlainTarget(request.url) ? app(request, response) : void handle(request, response),
  };
}

/**
 * Messages that have express's methods from the start.
 *
 * HOT: express puts its own prototype into each request and response. V8 then makes a new shape for the object, which
 * takes a twentieth of a read; nothing happens if the prototype is the same.
 */
export function messagesOf(app: Express): Messages {
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse extends ServerResponse {}
  Object.setPrototypeOf(ExpressRequest.prototype, app.request);
  Object.setPrototypeOf(ExpressResponse.prototype, app.response);
  Object.assign(app, { request: ExpressRequest.prototype, response: ExpressResponse.prototype });
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse as typeof ServerResponse };
}

// What express reads without `url.parse`, see the package `parseurl`.
const plainTarget = /^\/[^\t\n\f\r #\u00a0\ufeff]*$/;

/**
 * Whether express reads the target of a request itself.
 *
 * NOTE: it gives others, such as `http://host/path` and `/path#fragment`, to the deprecated `url.parse`, of which node
 * warns. They need not pass through express.
 */
export function isPlainTarget(target: string | undefined): boolean {
  return target !== undefined && plainTarget.test(target);
}

/** Loaded only where requests are counted. */
async function rateLimiterOf(options: RateLimitOptions | undefined) {
  if (options === undefined) return undefined;
  const { createRateLimiter } = await import('./rate-limit.ts');
  return createRateLimiter(options);
}

async function findPageSafely(
  findPage: FindReferencePage,
  path: string,
  { log }: AppOptions,
): Promise<Page | undefined> {
  try {
    return await findPage(path);
  } catch (error) {
    // An incomplete installation: the API works without its reference.
    log.error({ err: error, path }, 'a page of the reference cannot be read');
    return undefined;
  }
}

function requireRead({ method }: IncomingMessage): void {
  if (method === 'GET' || method === 'HEAD') return;
  throw new ApiError('method_not_allowed', undefined, { headers: { allow: 'GET, HEAD' } });
}

function pathOf(request: IncomingMessage): string {
  const target = request.url ?? '/';
  const mark = target.indexOf('?');
  return mark === -1 ? target : target.slice(0, mark);
}

async function sendPage(
  request: IncomingMessage,
  response: ServerResponse,
  page: Page,
  id: string,
): Promise<void> {
  const { content, headers } = await compressed(page, request.headers['accept-encoding']);
  response.writeHead(page.status ?? 200, {
    'x-request-id': id,
    'content-type': page.contentType,
    'content-length': content.length,
    'x-content-type-options': 'nosniff',
    ...page.headers,
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : content);
}

function sendError(response: ServerResponse, { status, body, headers }: Answer, id: string): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'x-request-id': id,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
