import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { startProxy } from '../../../src/tools/verify/proxy.ts';

test('the proxy passes heads on as they are, and refuses a body over its limit itself', async () => {
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === 'HEAD') response.writeHead(200, { 'content-length': '12345' }).end();
    else response.writeHead(request.url === '/empty' ? 204 : 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const { ca, cert, key } = await makeCertificate({
    clock: systemClock,
    entropy: systemEntropy,
  });
  const failures: string[] = [];
  const proxy = await startProxy({
    ...{ host: '127.0.0.1', port: 0, tls: { key, cert }, limits: { bodyBytes: 10 } },
    upstream: { url: new URL(`http://127.0.0.1:${port}`), ca: undefined, host: undefined },
    onExchange: () => undefined,
    onFailure: (_request, message) => failures.push(message),
  });
  const dispatcher = new Agent({ connect: { ca } });
  const send = async (method: 'GET' | 'HEAD' | 'POST', path: string, body?: string) => {
    const origin = `https://127.0.0.1:${proxy.port}`;
    const answer = await dispatcher.request({ origin, method, path, body: body ?? null });
    await answer.body.dump();
    return [answer.statusCode, answer.headers['content-length']];
  };
  try {
    expect(await send('HEAD', '/')).toEqual([200, '12345']);
    expect(await send('GET', '/empty')).toEqual([204, undefined]);
    expect(await send('GET', '/')).toEqual([200, '0']);
    expect((await send('POST', '/', '12345678901'))[0]).toBe(413);
    expect(failures).toEqual([]);
  } finally {
    await dispatcher.destroy();
    await proxy.close();
    server.close();
  }
});
