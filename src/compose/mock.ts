import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { acmeApp } from '../../mocks/apps.ts';
import { systemClock, systemEntropy } from '../adapters/runtime.ts';
import { readSandboxConfig, type SandboxConfig } from '../config/config.ts';
import { packageRoot } from '../config/package-root.ts';
import { ApiError } from '../errors.ts';
import { operations } from '../generated/operations.ts';
import { responseValidators } from '../generated/response-validators.js';
import type { Log } from '../ports/runtime.ts';
import { readClientBasic, readClientCredentials } from '../server/authenticate.ts';
import { refusalHeaders } from '../server/error-response.ts';
import { allowPage, isLocalOrigin } from '../server/origins.ts';
import { type Answer, operationOf, type RequestState } from '../server/request-state.ts';
import { requestIdsFrom } from '../server/transport-guards.ts';
import { type CheckResponse, createResponseCheck } from '../server/validation-issues.ts';
import { answerFromExamples, type OperationExamples, readExamples } from '../tools/mock.ts';
import { listen, rateLimiterFor } from './listen.ts';
import {
  createLocalLog,
  loadLocalCertificate,
  type RunningSandbox,
  rateLimitOf,
  requireOwnHostFirst,
} from './local-server.ts';
import { metricsFor } from './monitoring.ts';

/**
 * Starts a server that responds to every operation with examples of the API document. It stores nothing and signs
 * nothing.
 */
export async function startMock(
  options: Partial<SandboxConfig> & { log?: Log } = {},
): Promise<RunningSandbox> {
  const config: SandboxConfig = { ...readSandboxConfig({}), ...options };
  const log = options.log ?? createLocalLog(config);
  const certificate = await loadLocalCertificate(config);
  const document = JSON.parse(readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8'));
  const examples = readExamples(document);
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log });
  const metrics = await metricsFor(config.adminPort);
  const listening = await listen({
    config,
    log,
    clock: systemClock,
    newRequestId: requestIdsFrom(systemEntropy),
    transport: { plainHttp: config.plainHttp, trustedProxies: [] },
    tls: certificate,
    adminHost: config.host,
    isHostSigned: true,
    rateLimiter: await rateLimiterFor(rateLimitOf(config), metrics),
    authenticate: requireOwnHostFirst(config, requireCredentials),
    metrics,
    checkReady: async () => undefined,
    handlers: Object.fromEntries(
      Object.values(operations).map(({ id }) => [
        id,
        answerExample.bind(undefined, examples.get(id)!, check),
      ]),
    ),
  });
  const { appId = acmeApp.id, appSecret = acmeApp.secret } = config;
  return {
    ...listening,
    appId,
    appSecret,
    caFile: certificate.caFile,
    caPem: certificate.ca,
    isExposed: false,
    isMock: true,
  };
}

async function answerExample(
  examples: OperationExamples,
  check: CheckResponse,
  _context: unknown,
  state: RequestState,
): Promise<Answer> {
  const { successStatus, fileType } = operationOf(state);
  const prefer = headerText(state, 'prefer');
  const answer = answerFromExamples(examples, { prefer, body: state.body, successStatus });
  check(state, answer.status, answer.body);
  const { status, body } = answer;
  const headers = { ...headersOf(status, state), ...answer.headers };
  const isFile = fileType !== undefined && status === successStatus;
  return isFile ? { status, headers, text: String(body), fileType } : { status, headers, body };
}

/** Returns headers for a response, because the examples in the document have none. */
function headersOf(status: number, state: RequestState): Record<string, string> {
  const waiting = status === 429 || status === 503 ? { 'retry-after': '1' } : {};
  return { ...refusalHeaders(status, state), ...waiting };
}

/**
 * Requires credentials.
 *
 * CHOICE: credentials must be present as the API document says, but any value is accepted. As in a sandbox, web pages
 * from this machine may read responses that need no app secret.
 */
async function requireCredentials(state: RequestState): Promise<void> {
  const appId = headerText(state, 'service-app-id') || undefined;
  state.app = appId === undefined ? undefined : { id: appId };
  const security = state.route?.operation.security;
  const { origin, authorization } = state.headers;
  const isOfUser = security === 'app-or-user' && /^bearer +\S/i.test(authorization ?? '');
  const isOpen =
    security === 'none' || (security === 'app-or-origin' && authorization === undefined) || isOfUser;
  const isLocalPage = isOpen && appId !== undefined && origin !== undefined && isLocalOrigin(origin);
  if (isLocalPage) allowPage(state, origin);
  if (security === 'none') return;
  if (security === 'app-or-origin' && isLocalPage) return;
  if (security === 'oauth-client') {
    requireClient(state);
    return;
  }
  const schemes = security === 'app-or-user' ? /^(basic|bearer) +\S/i : /^basic +\S/i;
  if (!schemes.test(authorization ?? '')) throw new ApiError('missing_or_invalid_token');
  if (appId === undefined) throw new ApiError('missing_or_invalid_service_app_id');
  state.hasAppSecret = true;
}

/**
 * Requires the client id of an OAuth client, in HTTP Basic or in the body. It is called twice; the body has been read
 * only at the second call.
 */
function requireClient(state: RequestState): void {
  const { authorization } = state.headers;
  if (authorization === undefined && !state.isBodyRead) return;
  const [id] = authorization === undefined ? [] : readClientBasic(authorization);
  state.app = { id: id?.appId ?? readClientCredentials(state).clientId };
  state.hasAppSecret = id !== undefined;
}

function headerText(state: RequestState, name: string): string | undefined {
  const value = state.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
