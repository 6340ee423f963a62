import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { attempt, judgeOf } from '../../support/call.ts';
import type { Judge } from '../../support/document-judge.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  type DocumentedOperation,
  documentedOperations,
  exampleInput,
  exampleParameters,
} from './documented-operations.ts';

// Refusals that do not depend on the operation. Each response is validated against the document.
let sandbox: TestSandbox;
let judge: Judge;
beforeAll(async () => {
  sandbox = await startSandbox();
  judge = await judgeOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const withBody = documentedOperations.filter(({ operationId }) => operations[operationId].hasBody);

/** The message of a refusal, which OAuth clients read in a field of its own. */
function textOf(body: unknown): string | undefined {
  const { error, error_description: description } = body as { error?: string; error_description?: string };
  return description ?? error;
}

function isRequired({ parameters = [] }: DocumentedOperation, name: string): boolean {
  return parameters.some((parameter) => parameter.name === name && parameter.required === true);
}

/** A text as the body of an otherwise valid request. */
async function sendText(
  id: OperationId,
  path: object,
  { contentType, text }: Record<'contentType' | 'text', string>,
) {
  const values = path as Record<string, string>;
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: operations[id].path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
      encodeURIComponent(values[name] ?? ''),
    ),
    method: operations[id].method,
    headers: {
      authorization: `Basic ${Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64')}`,
      'service-app-id': sandbox.appId,
      'content-type': contentType,
    },
    body: text,
  });
  const body: unknown = await answer.body.json();
  judge({
    operationId: id,
    status: answer.statusCode,
    contentType: String(answer.headers['content-type']),
    body,
  });
  return { status: answer.statusCode, body };
}

describe('every operation', () => {
  test('every operation refuses plain HTTP', async () => {
    const origin = sandbox.baseUrl.replace('https:', 'http:');
    for (const { operationId: id } of documentedOperations) {
      const { method, path } = operations[id];
      const {
        statusCode: status,
        headers,
        body: sent,
      } = await request(origin + path.replaceAll(/[{}]/g, ''), { method });
      const body: unknown = await sent.json();
      expect({ id, status, body }).toEqual({ id, status: 403, body: { error: 'HTTPS is required.' } });
      judge({ operationId: id, status, contentType: String(headers['content-type']), body });
    }
  });

  test('every operation refuses what a page of another site sends to this machine', async () => {
    // What a browser refuses, unless the sandbox serves plain HTTP.
    const connect = { ca: sandbox.caPem, checkServerIdentity: () => undefined };
    const dispatcher = new Agent({ connect });
    onTestFinished(() => dispatcher.destroy());
    const { port } = new URL(sandbox.baseUrl);
    for (const { operationId: id } of documentedOperations) {
      const { method, path } = operations[id];
      const answer = await dispatcher.request({
        origin: sandbox.baseUrl,
        path: path.replaceAll(/[{}]/g, ''),
        method,
        // Its name was made to resolve to 127.0.0.1.
        headers: { host: `rebound.example:${port}`, origin: `https://rebound.example:${port}` },
      });
      const body: unknown = await answer.body.json();
      const error = `expected a host of this server, got \`rebound.example:${port}\`; --public-url adds one`;
      expect({ id, status: answer.statusCode, body }).toEqual({
        id,
        status: 403,
        body: { error, code: 'foreign_host' },
      });
      judge({
        operationId: id,
        status: answer.statusCode,
        contentType: String(answer.headers['content-type']),
        body,
      });
    }
  });

  test('every operation counts towards the rate limit', async () => {
    await using limited = await startSandbox({ rateLimit: { perSecond: 1, burst: 1 } });
    for (const operation of documentedOperations) {
      const { operationId: id } = operation;
      const ask = () => attempt(limited, id, exampleInput(operation));
      // A second may have passed since the last counted request; then the next one exceeds the limit.
      const first = await ask();
      const answer = first.status === 429 ? first : await ask();
      expect({ id, status: answer.status, body: answer.body }).toMatchObject({
        id,
        status: 429,
        body: { code: 'too_many_requests' },
      });
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
  });
});

test('a server with more requests than it can answer refuses every operation with 503', async () => {
  const admission = { requests: 0, concurrent: { reads: 1, writes: 1, signing: 1 }, delayMs: 20 };
  await using full = await startSandbox({ admission });
  for (const operation of documentedOperations) {
    const { operationId: id } = operation;
    const { status, body, headers } = await attempt(full, id, exampleInput(operation));
    expect({ id, status, body }).toEqual({
      id,
      status: 503,
      body: { error: 'the server has more requests than it can answer in time' },
    });
    expect(headers['retry-after']).toBe('1');
  }
});

/** Operations that need no database once the app's credentials are known. */
const readsNoDatabase: readonly OperationId[] = [
  'getCardConfig',
  'getCryptoDepositConfig',
  'searchCryptoDepositConfig',
  'quoteCryptoDeposit',
];

/** Operations that refuse the app secret before they read anything. */
const isUserOnly = (id: OperationId): boolean =>
  id === 'verifyOauthDevice' || (operations[id].tag === 'cards' && id !== 'getCardConfig');
const asUser = { headers: { authorization: 'Bearer token' } };

test('a database failure is a 500 without details', async () => {
  await using broken = await startSandbox();
  await attempt(broken, 'getApp', { path: { app_id: broken.appId } });
  const em = broken.database.orm.em.fork();
  await em.execute('pragma foreign_keys = off');
  const tables = await em.execute<{ name: string }[]>("select name from sqlite_master where type = 'table'");
  for (const { name } of tables.filter(({ name }) => !name.startsWith('sqlite_'))) {
    await em.execute(`drop table "${name}"`);
  }
  for (const operation of documentedOperations) {
    const { operationId: id } = operation;
    // Later than the memory of the server for credentials, even these would fail.
    if (readsNoDatabase.includes(id)) continue;
    const { path, query, body: sent } = exampleInput(operation);
    // The document's examples name another app; filters and cursors are refused before anything is read.
    const required = Object.entries(query).filter(([name]) => isRequired(operation, name));
    const input = {
      path: { ...path, app_id: broken.appId },
      query: Object.fromEntries(required),
      body: sent,
    };
    const { status, body, headers } = await attempt(broken, id, input, isUserOnly(id) ? asUser : {});
    // An operation that is not implemented does not use the database.
    if (status === 501) continue;
    const data = { request_id: headers['x-request-id'] };
    expect({ id, status, body }).toEqual({ id, status: 500, body: { error: 'Service unavailable.', data } });
  }
});

test('every operation refuses an expired request', async () => {
  const expiryMs = Date.UTC(2025, 0, 1);
  for (const operation of documentedOperations) {
    const answer = await attempt(sandbox, operation.operationId, exampleInput(operation), { expiryMs });
    expect(answer, operation.operationId).toMatchObject({ status: 400, body: { code: 'request_expired' } });
  }
});

describe('every operation with a body', () => {
  test('every operation with a body refuses another content type', async () => {
    for (const operation of withBody) {
      const { path } = exampleParameters(operation);
      const sent = { contentType: 'text/plain', text: '{}' };
      const { status, body } = await sendText(operation.operationId, path, sent);
      expect({ status, text: textOf(body) }, operation.operationId).toEqual({
        status: 415,
        text: 'Content-Type must be application/json',
      });
    }
  });

  test('every operation with a body refuses a body of more than 1 MB', async () => {
    const text = JSON.stringify({ text: 'x'.repeat(1_048_577) });
    // Those that take documents have a limit and a test of their own.
    const usual = withBody.filter(({ operationId }) => operations[operationId].maxBodyBytes === undefined);
    for (const operation of usual) {
      const { path } = exampleParameters(operation);
      const sent = { contentType: 'application/json', text };
      expect(await sendText(operation.operationId, path, sent), operation.operationId).toEqual({
        status: 413,
        body: { error: 'request body is larger than 1 MB' },
      });
    }
  });
});
