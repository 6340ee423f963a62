import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { silentLog } from '../../src/adapters/log.ts';
import { systemClock, systemEntropy } from '../../src/adapters/runtime.ts';
import { admissionFor } from '../../src/compose/admission.ts';
import { createRequestGate } from '../../src/compose/request-gate.ts';
import { readSandboxConfig } from '../../src/config/config.ts';
import type { OperationDescriptor } from '../../src/generated/operations.ts';
import { responseValidators } from '../../src/generated/response-validators.js';
import type { ValidateFunction } from '../../src/generated/validate-function.ts';
import { createFaultRules } from '../../src/sandbox/faults/fault-rules.ts';
import { findRequestFault } from '../../src/sandbox/faults/faults.ts';
import { createRequestLog } from '../../src/sandbox/requests/request-log.ts';
import { createAuthenticate } from '../../src/server/authenticate.ts';
import type { HttpExchange } from '../../src/server/http-exchange.ts';
import { requireOwnHost } from '../../src/server/origins.ts';
import { refuseDuplicates, refuseNul } from '../../src/server/parse-body.ts';
import { createBodyReader } from '../../src/server/read-body.ts';
import { answeredOf } from '../../src/server/record-exchange.ts';
import { createTransportGuard, requestIdsFrom } from '../../src/server/transport-guards.ts';
import { writeTogether } from '../../src/server/write-together.ts';
import type { Answer } from './bare-answer.ts';
import { isValid, queryOf } from './contract-facts.ts';
import { credentials } from './credentials.ts';
import type { Work } from './handlers/work.ts';

/*
 * Answers by the contract with everything that a sandbox promises about a request besides its answer: an id, TLS or
 * loopback, one `host` and one `authorization`, no page of another site, admission under load, credentials that can be
 * rotated, a budget of bytes, no U+0000, fault rules, a halt for snapshots, a checked response, and the record of it all.
 * Each of them is the function that does it in Custos, called one after the other in one place.
 */

const noEffects: HttpExchange['effects'] = [];

function exchangeOf(
  request: IncomingMessage,
  response: ServerResponse,
  found: { readonly operation: OperationDescriptor; readonly path: Record<string, string> },
  { id, remoteAddress }: { readonly id: string; readonly remoteAddress: string },
): HttpExchange {
  const target = request.url ?? '/';
  const mark = target.indexOf('?');
  return {
    ...{ request, response, id, method: request.method ?? 'GET', target },
    path: mark === -1 ? target : target.slice(0, mark),
    ...{ headers: request.headers, nowMs: systemClock.now(), remoteAddress },
    ...{ rawBody: Buffer.alloc(0), isBodyRead: false },
    route: { operation: found.operation, params: found.path },
    ...{ app: undefined, hasAppSecret: false, userId: undefined, sessionId: undefined },
    publicClientNetwork: undefined,
    ...{ query: queryOf(target), body: undefined, proof: undefined, signers: undefined },
    guess: undefined,
    ...{ effects: noEffects, injected: undefined },
  };
}

export function promisedAnswer(work: Work): Answer {
  const validators: Readonly<Record<string, Readonly<Record<string, ValidateFunction>>>> = responseValidators;
  const newRequestId = requestIdsFrom(systemEntropy);
  const guard = createTransportGuard({ plainHttp: true, trustedProxies: [] });
  const requireHost = requireOwnHost({ host: '127.0.0.1', publicUrls: [] });
  const admission = admissionFor(readSandboxConfig({}).admission, silentLog)!;
  const readBody = createBodyReader();
  const gate = createRequestGate(5_000);
  const findFault = findRequestFault(createFaultRules(systemEntropy), () => new Map());
  const requests = createRequestLog(() => 'bench');
  const app = {
    ...{ id: credentials.appId, name: 'Bench', allowedOrigins: [] },
    secretHashes: [hash('sha256', credentials.appSecret, 'buffer')],
  };
  const authenticate = createAuthenticate({
    apps: { find: async (id) => (id === app.id ? app : undefined), generation: () => 0 },
    clock: systemClock,
  });
  // For a stop that waits for them.
  const running = { count: 0 };
  const endOne = (): void => {
    running.count -= 1;
  };

  async function run(exchange: HttpExchange, found: Parameters<Answer>[2]): Promise<string> {
    const { request } = exchange;
    const { operation, path } = found;
    const { id, hasBody, successStatus } = operation;
    await authenticate(exchange);
    if (hasBody) {
      const { bytes, release } = await readBody(request, exchange.remoteAddress);
      exchange.response.on('close', release);
      exchange.rawBody = bytes;
      exchange.body = JSON.parse(bytes.toString('utf8'));
    }
    const { query, headers, body, method, target: url } = exchange;
    if (!isValid(id, { path, query, headers, body })) throw new Error('invalid data');
    refuseNul(exchange);
    await gate.enter();
    try {
      const { rawBody } = exchange;
      const fault = findFault({ operation: id, appId: exchange.app?.id, target: url, rawBody });
      if (fault !== undefined) throw new Error('no rule was set');
      const { leave } = await admission.begin(exchange);
      try {
        const result = await work[id]!({ path, body, method, url, headers });
        if (validators[id]?.[successStatus]?.(result) !== true)
          throw new Error('the response violates the contract');
        return JSON.stringify(result);
      } finally {
        leave();
      }
    } finally {
      gate.leave();
    }
  }

  return async (request, response, found) => {
    const startedMs = performance.now();
    running.count += 1;
    response.on('close', endOne);
    guard.scheme(request);
    refuseDuplicates(request);
    const identity = { id: newRequestId(), remoteAddress: guard.clientAddress(request) };
    const exchange = exchangeOf(request, response, found, identity);
    requireHost(exchange);
    if (admission.enter(found.operation) !== undefined) throw new Error('overloaded');
    let text: string;
    try {
      text = await run(exchange, found);
    } finally {
      admission.leave();
    }
    const status = found.operation.successStatus;
    const headers = {
      'x-request-id': exchange.id,
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
    };
    writeTogether(response, { status, headers }, text);
    const durationMs = performance.now() - startedMs;
    const ending = { headers, text, sent: { status, text }, refusal: undefined, why: undefined };
    requests.record(answeredOf(exchange, { ...ending, startedMs, durationMs, brand: undefined }));
  };
}
