import { execFile } from 'node:child_process';
import type { RequestListener } from 'node:http';
import { get } from 'node:https';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate, type ServerCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { keptLog } from './toy-server.ts';

const run = promisify(execFile);
let certificate: ServerCertificate;
beforeAll(async () => {
  certificate = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
});

const open: RunningServer[] = [];
afterAll(() => Promise.all(open.map((server) => server.close())));

async function start(handler: RequestListener, graceMs = 2_000) {
  const log = keptLog();
  const server = await startServer({
    handler,
    tls: certificate,
    host: '127.0.0.1',
    port: 0,
    log,
    newRequestId: () => 'request-1',
    graceMs,
  });
  open.push(server);
  return { server, log };
}

/** Returns the transport of the request. */
const tellTransport: RequestListener = (request, response) => {
  response.end((request.socket as { encrypted?: boolean }).encrypted ? 'tls' : 'plain');
};

function overTls(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, ca: certificate.ca, agent: false }, (response) => {
      response.setEncoding('utf8').on('data', resolve);
    }).on('error', reject);
  });
}

/** Sends `pieces` in sequence and returns everything that the server sends until it closes or stops sending. */
function raw(port: number, pieces: string[], silenceMs = 300): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1');
    let received = '';
    const finish = (): void => {
      socket.destroy();
      resolve(received);
    };
    socket.setTimeout(silenceMs, finish);
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('close', finish);
    socket.on('error', reject);
    socket.on('connect', async () => {
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((next) => setTimeout(next, 20));
      }
    });
  });
}

const plainGet = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

describe('requests that a client sends without waiting for responses', () => {
  const COUNT = 2_000;
  /** Of 2 kB, so that 32 arrive at once. */
  const requestOf = (index: number): string =>
    `GET /${index} HTTP/1.1\r\nhost: x\r\nx-pad: ${'a'.repeat(2_000)}\r\n\r\n`;
  const connectAs = {
    plain: (port: number): Socket => connect(port, '127.0.0.1'),
    tls: (port: number): Socket => connectTls({ host: '127.0.0.1', port, ca: certificate.ca }),
  };

  test.each(['plain', 'tls'] as const)(
    'over %s begin by and by, and all are answered in order',
    async (kind) => {
      const released = Promise.withResolvers<void>();
      let begun = 0;
      const { server } = await start((request, response) => {
        if (request.url === '/other') return void response.end('other');
        begun += 1;
        void released.promise.then(() => response.end(`<${request.url}>`));
      });
      const socket = connectAs[kind](server.port);
      const answered: string[] = [];
      const all = new Promise<void>((resolve) => {
        let text = '';
        socket.on('data', (chunk: Buffer) => {
          text += chunk.toString('latin1');
          answered.push(...[...text.matchAll(/<\/(\d+)>/g)].map(([, index]) => index!));
          text = text.slice(text.lastIndexOf('>') + 1);
          if (answered.length === COUNT) resolve();
        });
      });
      for (let index = 0; index < COUNT; index += 1) socket.write(requestOf(index));
      await expect.poll(() => begun).toBeGreaterThanOrEqual(100);
      // Another client is served meanwhile, and no more of these begin.
      for (let round = 0; round < 20; round += 1) {
        expect(
          await raw(server.port, ['GET /other HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n']),
        ).toContain('other');
      }
      expect(begun).toBeLessThanOrEqual(100 + 2 * 32);
      released.resolve();
      await all;
      expect(answered).toEqual(Array.from({ length: COUNT }, (_, index) => String(index)));
      socket.destroy();
    },
  );
});

describe('one port', () => {
  test('one port answers a TLS handshake in TLS and anything else in plain HTTP', async () => {
    const { server } = await start(tellTransport);
    const [tls, plain] = await Promise.all([overTls(server.port), raw(server.port, [plainGet])]);
    expect(tls).toBe('tls');
    expect(plain).toMatch(/^HTTP\/1\.1 200 OK\r\n.*plain/s);
  });

  test('one port accepts a plain request in pieces, and several on one connection', async () => {
    const { server } = await start(tellTransport);
    const answer = await raw(server.port, [
      'G',
      'ET / HT',
      'TP/1.1\r\nhost: x\r\n\r\n',
      plainGet,
      plainGet + plainGet,
    ]);
    expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(4);
  });

  test('one port accepts a plain body that begins in the first chunk and continues after it', async () => {
    const { server } = await start((request, response) => {
      let size = 0;
      request.on('data', (chunk: Buffer) => {
        size += chunk.length;
      });
      request.on('end', () => response.end(`size ${size}`));
    });
    const head = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n';
    expect(await raw(server.port, [head + 'a'.repeat(100_000), 'b'.repeat(100_000)])).toContain(
      'size 200000',
    );
  });

  test('one port answers invalid HTTP in JSON', async () => {
    const { server } = await start(tellTransport);
    const answer = await raw(server.port, ['HELLO\r\n\r\n']);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/\r\nx-request-id: request-1\r\n/);
    expect(answer).toMatch(/\r\n\r\n\{"error":"Bad Request","code":"invalid_data"\}$/);
  });

  test('one port answers oversized headers in JSON', async () => {
    const { server } = await start(tellTransport);
    const answer = await raw(server.port, [`GET / HTTP/1.1\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`]);
    expect(answer).toMatch(/^HTTP\/1\.1 431 .*\{"error":"Request Header Fields Too Large"\}$/s);
  });

  test('the response to a broken request never precedes that of a complete one', async () => {
    const { server } = await start((_request, response) => {
      setTimeout(() => response.end('made'), 50);
    });
    const whole = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n';
    const answer = await raw(server.port, [`${whole.repeat(3)}BAD\r\n\r\n`], 1_000);
    expect(answer.match(/HTTP\/1\.1 \d+ /g)).toEqual(Array(3).fill('HTTP/1.1 200 '));
    expect(answer.match(/made/g)).toHaveLength(3);
  });

  test('one port answers invalid HTTP on a connection that was used before', async () => {
    const { server } = await start(tellTransport);
    const answer = await raw(server.port, ['GET / HTTP/1.1\r\nhost: x\r\n\r\n', 'BAD\r\n\r\n'], 1_000);
    expect(answer.match(/HTTP\/1\.1 \d+ /g)).toEqual(['HTTP/1.1 200 ', 'HTTP/1.1 400 ']);
  });

  test.each([
    [
      'HTTP/1.1 without host',
      'GET / HTTP/1.1\r\n\r\n',
      '400 Bad Request',
      { error: 'expected the header `host`', code: 'invalid_data' },
    ],
    [
      'an unknown expectation',
      'GET / HTTP/1.1\r\nhost: x\r\nexpect: 200-maybe\r\n\r\n',
      '417 Expectation Failed',
      { error: 'expected no `expect` or `100-continue`, got `200-maybe`' },
    ],
    [
      'CONNECT',
      'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n',
      '405 Method Not Allowed',
      { error: 'Method Not Allowed' },
    ],
  ])(
    'one port answers %s in JSON, on a connection of its own and after other requests',
    async (_what, request, statusLine, expected) => {
      const { server } = await start(tellTransport);
      for (const pieces of [[request], [plainGet, request]]) {
        const answers = (await raw(server.port, pieces, 1_000)).split(/(?=HTTP\/1\.1 )/);
        expect(answers).toHaveLength(pieces.join('').match(/HTTP\/1\.1/g)!.length);
        if (answers.length === 2) expect(answers.shift()).toContain('HTTP/1.1 200 OK');
        const [head = '', body = ''] = answers[0]!.split('\r\n\r\n');
        expect(head.split('\r\n')[0]).toBe(`HTTP/1.1 ${statusLine}`);
        expect(head.toLowerCase()).toContain('\r\ncontent-type: application/json; charset=utf-8\r\n');
        expect(head).toContain('\r\nx-request-id: request-1\r\n');
        expect(JSON.parse(body)).toEqual(expected);
      }
    },
  );

  test('CONNECT behind an unanswered request waits for its response', async () => {
    const { server } = await start((_request, response) => {
      setTimeout(() => response.end('made'), 50);
    });
    const connectTo = 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n';
    const answer = await raw(server.port, [plainGet + connectTo], 1_000);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n.*made/s);
    expect(server.inFlight()).toBe(0);
  });

  test('HTTP/1.0 needs no host, and `100-continue` is met', async () => {
    const { server } = await start(tellTransport);
    expect(await raw(server.port, ['GET / HTTP/1.0\r\n\r\n'])).toMatch(/ 200 OK\r\n.*plain/s);
    const waiting = 'POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n';
    expect(await raw(server.port, [waiting, 'ok'])).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/,
    );
  });

  test('closes connections of an address beyond its limit, and accepts new ones when others close', async () => {
    const server = await startServer({
      handler: tellTransport,
      tls: certificate,
      host: '127.0.0.1',
      port: 0,
      log: keptLog(),
      newRequestId: () => '',
      connections: { total: 100, perAddress: 2 },
    });
    open.push(server);
    const held = [connect(server.port, '127.0.0.1'), connect(server.port, '127.0.0.1')];
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    await expect(overTls(server.port)).rejects.toMatchObject({ code: 'ECONNRESET' });
    for (const socket of held) socket.destroy();
    await expect.poll(() => overTls(server.port).catch(() => undefined)).toBe('tls');
  });

  test('one port survives a broken TLS handshake and a silent connection', async () => {
    const { server, log } = await start(tellTransport);
    await raw(server.port, ['\x16\x03\x01broken'], 100);
    await raw(server.port, [], 50);
    expect(await overTls(server.port)).toBe('tls');
    expect(log.lines).toEqual([]);
  });

  test('one port in use is refused with a reason', async () => {
    const { server } = await start(tellTransport);
    const options = {
      handler: tellTransport,
      tls: undefined,
      host: '127.0.0.1',
      log: keptLog(),
      newRequestId: () => '',
    };
    await expect(startServer({ ...options, port: server.port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });
});

describe('a stop', () => {
  test('finishes requests in progress and accepts no new ones', async () => {
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { server, log } = await start((_request, response) => {
      begin();
      setTimeout(() => response.end('finished'), 200);
    });
    const answer = raw(server.port, [plainGet], 1_000);
    await begun;
    expect(server.inFlight()).toBe(1);
    const closing = server.close();
    await expect(raw(server.port, [plainGet])).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await closing;
    expect(await answer).toMatch(/\r\nconnection: close\r\n.*finished/is);
    expect(server.inFlight()).toBe(0);
    expect(log.lines).toEqual([]);
  });

  test('a stop does not wait for idle and undecided connections', async () => {
    const { server } = await start(tellTransport);
    // Longer than a test may take.
    const idle = raw(server.port, [plainGet], 60_000);
    const undecided = raw(server.port, [], 60_000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await server.close();
    await Promise.all([idle, undecided]);
  });

  test('closes unfinished connections after the grace period and reports that', async () => {
    const { server, log } = await start(() => undefined, 100);
    const answer = raw(server.port, [plainGet], 5_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await server.close();
    expect(await answer).toBe('');
    expect(log.lines).toEqual([
      {
        level: 'warn',
        fields: { requests: 1 },
        message: 'requests cut off at shutdown: they did not finish in time',
      },
    ]);
  });

  test('a stop answers what comes on idle connections while it lingers, and then closes them', async () => {
    const { server } = await start(tellTransport);
    const [used, unused] = [connect(server.port, '127.0.0.1'), connect(server.port, '127.0.0.1')];
    const answers = { used: '', unused: '' };
    used.on('data', (chunk) => {
      answers.used += chunk;
    });
    unused.on('data', (chunk) => {
      answers.unused += chunk;
    });
    for (const socket of [used, unused]) socket.write(plainGet);
    await expect.poll(() => answers.used && answers.unused).toContain('plain');
    const endOf = (socket: Socket) =>
      new Promise<number>((resolve) => socket.once('close', () => resolve(performance.now())));
    const ends = Promise.all([endOf(used), endOf(unused)]);
    const LINGER_MS = 2_000;
    const closedMs = performance.now();
    const closing = server.close(LINGER_MS);
    await expect(raw(server.port, [plainGet])).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    answers.used = '';
    used.write(plainGet);
    await closing;
    const [usedMs, unusedMs] = await ends;
    expect(answers.used).toMatch(/^HTTP\/1.1 200 OK\r\n.*connection: close\r\n.*plain/is);
    expect(usedMs - closedMs).toBeLessThan(LINGER_MS - 10);
    expect(unusedMs - closedMs).toBeGreaterThan(LINGER_MS - 10);
  });

  test('a stop can be called twice', async () => {
    const { server } = await start(tellTransport);
    await Promise.all([server.close(), server.close()]);
  });

  test('nothing keeps what the handler of a stopped server refers to', async () => {
    // A process of its own: to collect the heap of all tests takes a second.
    const program = `
      import { startServer } from ${JSON.stringify(new URL('../../../src/server/server.ts', import.meta.url).href)};
      async function startAndStop(tls) {
        const state = { of: 'the handler' };
        const handler = () => state;
        const options = { handler, tls, host: '127.0.0.1', port: 0, log: console, newRequestId: () => '' };
        await (await startServer(options)).close();
        return new WeakRef(state);
      }
      const states = [await startAndStop(undefined), await startAndStop(${JSON.stringify(certificate)})];
      for (let round = 0; round < 3; round += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        gc();
      }
      console.log(states.map((state) => state.deref() === undefined));`;
    const { stdout } = await run(process.execPath, ['--expose-gc', '--input-type=module', '-e', program]);
    expect(stdout).toBe('[ true, true ]\n');
  });
});

describe('a client that does not read', () => {
  const UNREAD_MS = 200;
  const page = Buffer.alloc(4_000_000, 'a');

  async function startShort(handler: RequestListener) {
    const server = await startServer({
      ...{ handler, tls: certificate, host: '127.0.0.1', port: 0 },
      ...{ log: keptLog(), newRequestId: () => '', unreadMs: UNREAD_MS },
    });
    open.push(server);
    return server;
  }
  const clients = {
    plain: (port: number) => connect(port, '127.0.0.1'),
    tls: (port: number): Socket => connectTls({ port, host: '127.0.0.1', ca: certificate.ca }),
  };
  const requests = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(50);

  test.each(Object.entries(clients))(
    '%s: its connection ends, with the requests after the unread response',
    async (_, dial) => {
      const server = await startShort((_request, response) => void response.end(page));
      const socket = dial(server.port).on('error', () => undefined);
      socket.pause();
      const beganMs = performance.now();
      socket.write(requests);
      await expect.poll(server.inFlight).toBeGreaterThan(0);
      await expect.poll(server.inFlight, { timeout: 30_000 }).toBe(0);
      expect(performance.now() - beganMs).toBeGreaterThan(UNREAD_MS);
      socket.destroy();
    },
  );

  test('one that reads slowly gets the whole response', async () => {
    const server = await startShort((_request, response) => void response.end(page));
    const socket = clients.plain(server.port);
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    let bytes = 0;
    for await (const chunk of socket) {
      bytes += (chunk as Buffer).length;
      // For longer than the limit in all.
      await pause(4);
    }
    expect(bytes).toBeGreaterThan(page.length);
  });

  test('a handler may take longer than the limit', async () => {
    const server = await startShort((_request, response) => {
      setTimeout(() => response.end('late'), 3 * UNREAD_MS);
    });
    expect(await raw(server.port, ['GET / HTTP/1.1\r\nhost: x\r\n\r\n'], 5 * UNREAD_MS)).toMatch(/late/);
  });
});
