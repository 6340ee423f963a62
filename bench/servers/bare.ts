import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import createRouter from 'find-my-way';
import type { OperationDescriptor } from '../../src/generated/operations.ts';
import type { ValidateFunction } from '../../src/generated/validate-function.ts';
import { allOperations, colonPath, isAuthorized, isValid, queryOf } from './contract-facts.ts';
import { chooseWork, listenAndAnnounce, readOwnOptions } from './own-server.ts';

// The practical limit for the same work: node:http, a radix router, precompiled validators, JSON.stringify, no
// framework.

const options = readOwnOptions();
const work = await chooseWork(options);
const responseValidators: Readonly<Record<string, Readonly<Record<string, ValidateFunction>>>> =
  options.checkResponses
    ? (await import('../../src/generated/response-validators.js')).responseValidators
    : {};
const router = createRouter();
for (const operation of allOperations) {
  router.on(operation.method, colonPath(operation.path), () => undefined, operation);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function readBody(request: IncomingMessage): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', reject);
    request.on('end', () => {
      const raw = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      try {
        resolve(raw.length === 0 ? undefined : JSON.parse(raw.toString('utf8')));
      } catch (error) {
        reject(error);
      }
    });
  });
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url = '/', method = 'GET', headers } = request;
  const found = router.find(method as 'GET', url);
  if (found === null) return send(response, 404, { error: 'not found' });
  const { id, hasBody, successStatus } = found.store as OperationDescriptor;
  if (!isAuthorized(headers)) return send(response, 401, { error: 'unauthorized' });
  const body = hasBody ? await readBody(request) : undefined;
  const path = found.params as Record<string, string>;
  if (!isValid(id, { path, query: queryOf(url), headers, body })) {
    return send(response, 400, { error: 'invalid data' });
  }
  const run = work[id];
  if (run === undefined) return send(response, 501, { error: 'not built' });
  const result = await run({ path, body });
  if (options.checkResponses && responseValidators[id]?.[successStatus]?.(result) !== true) {
    return send(response, 500, { error: 'the response violates the contract' });
  }
  send(response, successStatus, result);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => send(response, 500, { error: String(error) }));
});
listenAndAnnounce(server, options.port);
