import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express from 'express';
import { ApiError } from '../errors.ts';
import { operations } from '../generated/operations.ts';
import { requestValidators } from '../generated/request-validators.js';
import { createBrand } from './brand.ts';
import { answerError } from './error-response.ts';
import type { Answer } from './http-exchange.ts';
import { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts';
import type { RateLimitOptions } from './rate-limit.ts';
import { createReferencePages, type FindPage, type Page } from './reference-pages.ts';
import { refuseNul } from './refuse-nul.ts';
import { createTransportGuard } from './transport-guards.ts';

/** Requests under a path that another pipeline answers. */
export interface Mount {
  /** Ends with a slash: `/_sandbox/`. */
  readonly prefix: string;
  readonly handle: Pipeline;
}

export interface AppOptions
  extends Omit<PipelineOptions, 'operations' | 'validators' | 'brand' | 'rateLimiter' | 'checkInput'> {
  /** The clients' own word for `service`. */
  readonly prefix: string;
  readonly rateLimit?: RateLimitOptions | undefined;
  /** The folder of `package.json`; the contract's document lies in its `openapi/`. */
  readonly packageRoot: string;
  readonly mounts?: readonly Mount[];
}

/** The whole application: every operation of the contract, its document at `/openapi.json`, its reference at `/docs`. */
export async function createApp(options: AppOptions): Promise<RequestListener> {
  const brand = createBrand(options.prefix);
  const pipeline = await createPipeline({
    ...options,
    operations: Object.values(operations),
    validators: requestValidators,
    checkInput: refuseNul,
    brand,
    rateLimiter: await rateLimiterOf(options.rateLimit),
  });
  const findPage = createReferencePages(options.packageRoot, brand);
  const guard = createTransportGuard(options.transport);
  const mounts = options.mounts ?? [];

  const handle = (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = pathOf(request);
    if (path.startsWith('/v1/') || path.startsWith('/api/')) return pipeline(request, response);
    for (const mount of mounts) {
      if (path.startsWith(mount.prefix)) return mount.handle(request, response);
    }
    const page = findPageSafely(findPage, path, options);
    if (page === undefined) return pipeline(request, response);
    return servePage(request, response, page);
  };

  const servePage = async (request: IncomingMessage, response: ServerResponse, page: Page): Promise<void> => {
    const id = options.newRequestId();
    try {
      guard.scheme(request);
      requireRead(request);
      sendPage(request, response, page, id);
    } catch (error) {
      sendError(response, answerError(error, id, options.log), id);
    }
  };

  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  // In any other environment express would show the stack of a fault to the caller.
  app.set('env', 'production');
  // One middleware for everything: express would try 160 routes one by one.
  app.use(handle);
  return app;
}

/** Loaded only where requests are counted. */
async function rateLimiterOf(options: RateLimitOptions | undefined) {
  if (options === undefined) return undefined;
  const { createRateLimiter } = await import('./rate-limit.ts');
  return createRateLimiter(options);
}

function findPageSafely(findPage: FindPage, path: string, { log }: AppOptions): Page | undefined {
  try {
    return findPage(path);
  } catch (error) {
    // An incomplete installation: the API works, its reference is not there.
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

function sendPage(request: IncomingMessage, response: ServerResponse, page: Page, id: string): void {
  response.writeHead(200, {
    'x-request-id': id,
    'content-type': page.contentType,
    'content-length': page.content.length,
    'x-content-type-options': 'nosniff',
    ...page.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : page.content);
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
