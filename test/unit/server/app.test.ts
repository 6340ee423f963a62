import { type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import express from 'express';
import { OpenAPIBackend } from 'openapi-backend';
import { expect, test, vi } from 'vitest';
import { packageRoot } from '../../../src/config/package-root.ts';
import { operations } from '../../../src/generated/operations.ts';
import { type AppOptions, createApp } from '../../../src/server/app.ts';
import { createAuthenticate } from '../../../src/server/authenticate.ts';
import { startServer } from '../../../src/server/server.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { appHeaders, handlersOf, keptLog, stoppedClock, toyDirectory } from './toy-server.ts';

pauseRecording();

const page = { contentType: 'text/plain', content: Buffer.from('a page') };

async function start(options: Partial<AppOptions> = {}) {
  const log = keptLog();
  const clock = stoppedClock();
  let ids = 0;
  const newRequestId = () => `request-${++ids}`;
  const handler = await createApp({
    prefix: 'service',
    packageRoot: packageRoot(),
    transport: { plainHttp: true, trustedProxies: [] },
    ...{ clock, log, newRequestId },
    publicBaseUrls: () => [],
    isHostSigned: true,
    authenticate: createAuthenticate({ apps: toyDirectory(), clock }),
    handlers: handlersOf(Object.values(operations), async ({ route }) => ({
      status: 200,
      body: { operation: route?.operation.id },
    })),
    ...options,
  });
  const server = await startServer({
    handler,
    tls: undefined,
    host: '127.0.0.1',
    port: 0,
    log,
    newRequestId,
  });
  return {
    log,
    async answer(path: string, method = 'GET', headers: Record<string, string> = appHeaders) {
      const response = await new Promise<IncomingMessage>((resolve, reject) =>
        send({ host: '127.0.0.1', port: server.port, path, method, headers, agent: false }, resolve)
          .on('error', reject)
          .end(),
      );
      const text = (await response.toArray()).join('');
      return { status: response.statusCode, headers: response.headers, text };
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

test('requests of the API, the control plane, pages and the reference each have their route', async () => {
  await using server = await start({
    findPage: (path) => (path === '/page' ? page : undefined),
    mounts: [
      {
        path: /^\/_sandbox\//,
        async handle(request, response) {
          response.end(`control plane: ${request.url}`);
        },
      },
    ],
  });
  const textOf = async (path: string) => (await server.answer(path)).text;
  expect(await textOf('/v1/wallets/w?include=x')).toContain('"operation":"getWallet"');
  expect(await textOf('/api/v1/wallets/w')).toContain('"operation":"getWallet"');
  expect(await textOf('/.well-known/oauth-authorization-server')).toContain('"getOauthMetadata"');
  expect(await textOf('/page?x')).toBe('a page');
  expect(await textOf('/_sandbox/clock?a=%zz')).toBe('control plane: /_sandbox/clock?a=%zz');
  expect(JSON.parse(await textOf('/openapi.json'))).toMatchObject({ openapi: '3.1.0' });
});

test('each request passes a route of express and the handler that openapi-backend has for its operation', async () => {
  await using server = await start();
  const handling = vi.spyOn(OpenAPIBackend.prototype, 'handleRequest').mockResolvedValue({ status: 418 });
  expect((await server.answer('/v1/wallets/w')).status).toBe(418);
  handling.mockRestore();

  const routing = vi
    .spyOn(express.Router.prototype, 'handle')
    .mockImplementation(((_request: IncomingMessage, response: ServerResponse) =>
      response.writeHead(418).end()) as never);
  expect((await server.answer('/v1/wallets/w')).status).toBe(418);
  routing.mockRestore();
  expect((await server.answer('/v1/wallets/w')).status).toBe(200);
});

test('every other path is answered by the API: to callers with credentials it is not found', async () => {
  await using server = await start();
  for (const path of ['/', '/docs/none', '/_sandbox/clock', '/V1/wallets', '/docsx', '/%zz']) {
    const text = path === '/%zz' ? 'percent-encoding' : 'Not found';
    expect((await server.answer(path)).text, path).toContain(text);
  }
  expect(await server.answer('/nothing', 'GET', {})).toMatchObject({ status: 401 });
  expect((await server.answer('/nothing', 'OPTIONS')).status).toBe(404);
});

test.each(['http://127.0.0.1/v1/wallets/w', '/v1/wallets/w#fragment'])(
  '%s reaches the API',
  async (target) => {
    await using server = await start();
    expect((await server.answer(target)).text).toContain('"operation":"getWallet"');
  },
);

test('the error middleware answers the errors of pages in the form of the API', async () => {
  const bug = new Error('the disk is gone');
  await using server = await start({
    findPage(path) {
      if (path === '/bug') throw bug;
      return path === '/page' ? page : undefined;
    },
  });
  const { status, headers, text } = await server.answer('/page', 'POST');
  expect({ status, body: JSON.parse(text) }).toEqual({ status: 405, body: { error: 'method not allowed' } });
  expect(headers).toMatchObject({
    allow: 'GET, HEAD',
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': 'request-1',
  });
  expect(headers).not.toHaveProperty('x-powered-by');
  const failed = await server.answer('/bug');
  expect(failed).toMatchObject({ status: 500, headers: { 'x-request-id': 'request-2' } });
  expect(JSON.parse(failed.text)).toMatchObject({ data: { request_id: 'request-2' } });
  expect(server.log.lines).toContainEqual(
    expect.objectContaining({ level: 'error', fields: expect.objectContaining({ err: bug }) }),
  );
});
