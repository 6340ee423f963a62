import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OperationDescriptor } from '../../src/generated/operations.ts';
import { isAuthorized, isValid, queryOf } from './contract-facts.ts';
import type { Work } from './handlers/work.ts';

/** Sends a body as JSON. */
export function send(response: ServerResponse, status: number, body: unknown): void {
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

/** An operation that a router has found, and the parameters of its path. */
export interface Found {
  readonly operation: OperationDescriptor;
  readonly path: Record<string, string>;
}

/** Answers a request whose operation is found: credentials, body, validation, work. */
export type Answer = (request: IncomingMessage, response: ServerResponse, found: Found) => Promise<void>;

/** The least that answers a request by the contract. */
export function bareAnswer(work: Work): Answer {
  return async (request, response, { operation, path }) => {
    const { id, hasBody, successStatus } = operation;
    const { method = 'GET', url = '/', headers } = request;
    if (!isAuthorized(headers)) return send(response, 401, { error: 'unauthorized' });
    const body = hasBody ? await readBody(request) : undefined;
    if (!isValid(id, { path, query: queryOf(url), headers, body })) {
      return send(response, 400, { error: 'invalid data' });
    }
    const run = work[id];
    if (run === undefined) return send(response, 501, { error: 'not built' });
    send(response, successStatus, await run({ path, body, method, url, headers }));
  };
}
