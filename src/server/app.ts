import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import express from 'express';
import { loadOnce } from '../engine/load-once.ts';
import { ApiError } from '../errors.ts';
import { definition } from '../generated/definition.ts';
import { operations } from '../generated/operations.ts';
import { requestValidators } from '../generated/request-validators.js';
import type { Log } from '../ports/runtime.ts';
import { createBrand } from './brand.ts';
import { errorAnswer } from './error-response.ts';
import { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts';
import type { RateLimiter } from './rate-limit.ts';
import {
  compressed,
  createReferencePages,
  type FindPage,
  type FindReferencePage,
  type Page,
  type ReferenceOptions,
} from './reference-pages.ts';
import { createTransportGuard } from './transport-guards.ts';
import { refuseNulCharacters } from './validation-issues.ts';

/** Paths that a pipeline other than the API's serves. */
export interface Mount {
  /** Must have no capturing groups: express would decode the captures, and would refuse invalid encodings itself. */
  readonly path: RegExp;
  readonly handle: Pipeline;
}

export interface AppOptions
  extends Omit<
    PipelineOptions,
    'definition' | 'operations' | 'validators' | 'bodyShapes' | 'brand' | 'checkInput'
  > {
  /** The brand that clients use instead of the neutral word `service`. */
  readonly prefix: string;
  /** The folder that contains `package.json` and `openapi/`. */
  readonly packageRoot: string;
  readonly mounts?: readonly Mount[];
  /** Finds further static pages. They take precedence over `mounts`. */
  readonly findPage?: FindPage | undefined;
  readonly reference?: ReferenceOptions | undefined;
}

const everyOperation = Object.values(operations);
const loadBodyShapes = loadOnce(async () => (await import('../generated/body-shapes.ts')).bodyShapes);

/** The paths of the API, with their alias `/api/…`. */
const apiPaths = /^\/(?:v1|api)\//;
const oauthMetadata = /^\/\.well-known\//;
const referencePaths = /^\/(?:openapi\.json|docs|docs\/.*)$/;

/**
 * Creates the whole application: every operation of the API, the control plane of a sandbox, its inspector, the API
 * document at `/openapi.json`, and the reference at `/docs`.
 *
 * HOT: an express router, not an `express()` application. An application replaces the prototypes of each request and
 * response, which makes V8 slower: a read takes an eighth more CPU (`npm run bench -- --only stored`). The handlers
 * here therefore use plain `node:http`.
 */
export async function createApp(options: AppOptions): Promise<RequestListener> {
  const { log, newRequestId, findPage = () => undefined, mounts = [] } = options;
  const brand = createBrand(options.prefix);
  const pipeline = await createPipeline({
    ...options,
    definition,
    operations: everyOperation,
    validators: requestValidators,
    bodyShapes: loadBodyShapes,
    checkInput: refuseNulCharacters,
    brand,
  });
  const reference = withoutFailures(createReferencePages(options.packageRoot, brand, options.reference), log);

  const app = express.Router();
  app.route(apiPaths).all(pipeline);
  app.route(oauthMetadata).all(pipeline);
  app.use(servePages(options, findPage));
  for (const { path, handle } of mounts) app.route(path).all(handle);
  app.route(referencePaths).all(servePages(options, reference, options.rateLimiter));
  // All other paths go to the API, whose 404 is sent only to callers with credentials.
  app.use(pipeline);
  app.use(answerErrors(log, newRequestId));

  return (request, response) => {
    if (isPlainTarget(request.url)) app(request as Request, response as Response, () => response.destroy());
    else void pipeline(request, response);
  };
}

// The targets that express parses without `url.parse`; see the package `parseurl`.
const plainTarget = /^\/[^\t\n\f\r #\u00a0\ufeff]*$/;

/**
 * Returns whether express can parse the target of a request.
 *
 * NOTE: express passes other targets, such as `http://host/path` and `/path#fragment`, to the deprecated `url.parse`,
 * and Node prints a warning. They go straight to the API.
 */
export function isPlainTarget(target: string | undefined): boolean {
  return target !== undefined && plainTarget.test(target);
}

/**
 * Returns a `find` that logs errors instead of throwing them. The API still works if the installation is incomplete.
 */
function withoutFailures(find: FindReferencePage, log: Log): FindReferencePage {
  return async (path) => {
    try {
      return await find(path);
    } catch (error) {
      log.error({ err: error, path }, 'failed to read a reference page; is the installation complete?');
      return undefined;
    }
  };
}

/** Returns a handler for the pages that `find` returns. `rateLimiter` counts them by client address and size. */
function servePages(
  { transport, newRequestId }: Pick<AppOptions, 'transport' | 'newRequestId'>,
  find: FindPage | FindReferencePage,
  rateLimiter?: RateLimiter,
) {
  const guard = createTransportGuard(transport);
  return async (request: IncomingMessage, response: ServerResponse, next: NextFunction): Promise<void> => {
    const page = await find(pathOf(request));
    if (page === undefined) {
      next();
      return;
    }
    response.setHeader('x-request-id', newRequestId());
    guard.scheme(request);
    const caller = { headers: request.headers, remoteAddress: guard.clientAddress(request) };
    rateLimiter?.countPage(caller.remoteAddress, page.content.length);
    page.admit?.(caller);
    requireRead(request);
    await sendPage(request, response, page);
  };
}

/** Returns the path without the query. Express parses only targets without a fragment. */
function pathOf({ url = '/' }: IncomingMessage): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

function requireRead({ method }: IncomingMessage): void {
  if (method === 'GET' || method === 'HEAD') return;
  throw new ApiError('method_not_allowed', undefined, { headers: { allow: 'GET, HEAD' } });
}

async function sendPage(request: IncomingMessage, response: ServerResponse, page: Page): Promise<void> {
  const { content, headers } = await compressed(page, request.headers['accept-encoding']);
  response.writeHead(page.status ?? 200, {
    'content-type': page.contentType,
    'content-length': content.length,
    'x-content-type-options': 'nosniff',
    ...page.headers,
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : content);
}

/** Returns an error middleware for pages. Pipelines send their own errors, because they also record the request. */
function answerErrors(log: Log, newRequestId: () => string) {
  // Express recognizes an error middleware by its four parameters.
  return (error: unknown, _request: IncomingMessage, response: ServerResponse, _next: NextFunction): void => {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const id = String(response.getHeader('x-request-id') ?? newRequestId());
    const { status, body, headers } = errorAnswer(error, { id }, log);
    const text = JSON.stringify(body);
    response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'x-request-id': id,
      ...headers,
    });
    response.end(text);
  };
}
