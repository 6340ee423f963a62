import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { systemClock } from '../../../src/adapters/runtime.ts';
import { packageRoot } from '../../../src/config/package-root.ts';
import { createApp } from '../../../src/server/app.ts';

test('express leaves the prototypes of requests and responses as the server made them', async () => {
  const { handler, messages } = await createApp({
    prefix: 'service',
    packageRoot: packageRoot(),
    transport: { plainHttp: true, trustedProxies: [] },
    clock: systemClock,
    log: silentLog,
    newRequestId: () => 'request',
    publicBaseUrls: () => [],
    isHostSigned: true,
    authenticate: async () => undefined,
    run: () => Promise.resolve({ status: 200 }),
  });
  const request = new messages.IncomingMessage(new Socket());
  const response = new messages.ServerResponse(request);
  request.url = '/v1/wallets';
  request.method = 'GET';
  const made = [request, response].map((message) => Object.getPrototypeOf(message));

  handler(request, response);

  expect([request, response].map((message) => Object.getPrototypeOf(message))).toEqual(made);
  expect(response).toHaveProperty('locals');
});
