import { lookup as systemLookup } from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type LookupFunction,
  type Socket,
} from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import {
  anyAddress,
  createWebhookSender,
  publicHttpsOnly,
  type WebhookGuard,
} from '../../../src/adapters/webhook-http.ts';
import type { WebhookSender } from '../../../src/ports/webhooks.ts';

/** A server on an address of this machine that counts its requests. */
async function serve(listener: RequestListener, host = '127.0.0.1', tls?: { key: string; cert: string }) {
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, host);
  await once(server, 'listening');
  return {
    server,
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const ok: RequestListener = (request, response) => {
  request.resume().on('end', () => response.end('ok'));
};

async function withSender<T>(
  options: Parameters<typeof createWebhookSender>[0],
  work: (sender: WebhookSender) => Promise<T>,
): Promise<T> {
  const sender = createWebhookSender(options);
  try {
    return await work(sender);
  } finally {
    await sender.close();
  }
}

const post = (sender: WebhookSender, url: string, timeoutMs = 15_000) =>
  sender.send({
    ...{ url, headers: { 'webhook-id': 'msg_1' }, bodyText: '{"type":"wallet.archived"}', timeoutMs },
    event: { type: 'wallet.archived', appId: 'acme' },
  });

const refused = { status: undefined, failure: 'address_not_allowed', durationMs: expect.any(Number) };

/** Spellings of addresses that are not public; `PORT` is replaced by the port of a server on loopback. */
function closedHosts(): string[] {
  const plain = [
    ...[
      '127.0.0.1',
      '127.1',
      '127.0.1',
      '127.255.255.254',
      '2130706433',
      '0x7f000001',
      '0x7f.1',
      '017700000001',
    ],
    ...[
      '0177.0.0.1',
      '0x7f.0x0.0x0.0x1',
      '127.0.0.1.',
      '0',
      '0.0.0.0',
      '0.1.2.3',
      '１２７.0.0.1',
      '127。0。0。1',
    ],
    ...['10.0.0.1', '10.255.255.255', '167772161', '0xa000001', '012.0.0.1', '172.16.0.1', '172.31.255.254'],
    ...[
      '192.168.0.1',
      '192.168.1.254',
      '0xc0a80001',
      '3232235521',
      '169.254.169.254',
      '2852039166',
      '0xa9fea9fe',
    ],
    ...[
      '169.254.0.1',
      '100.64.0.1',
      '100.127.255.254',
      '192.0.0.1',
      '192.0.0.170',
      '192.0.2.1',
      '192.88.99.1',
    ],
    ...['198.18.0.1', '198.19.255.254', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.250'],
    ...['240.0.0.1', '255.255.255.255', '4294967295', 'localhost', 'LOCALHOST', 'localhost.', 'a.localhost'],
    ...['printer.local', 'metadata.google.internal', 'router.home.arpa', 'intranet', 'db', 'x.onion'],
  ];
  const ipv4 = [
    '127.0.0.1',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '8.8.8.8',
  ];
  const hex = (address: string): string => {
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  };
  const embedded = ipv4.flatMap((address) => [
    `::ffff:${address}`,
    `::ffff:${hex(address)}`,
    `0:0:0:0:0:ffff:${address}`,
    `::ffff:0:${hex(address)}`,
    `::${hex(address)}`,
    `64:ff9b::${address}`,
    `64:ff9b::${hex(address)}`,
    `64:ff9b:1::${hex(address)}`,
    `2002:${hex(address)}::1`,
    `2001:0:${hex(address)}::1`,
    `fe80::${hex(address)}`,
    `fd00::${hex(address)}`,
    `fec0::${hex(address)}`,
    `ff02::${hex(address)}`,
    `2001:db8::${hex(address)}`,
    `100::${hex(address)}`,
  ]);
  const ipv6 = [
    ...embedded,
    '::',
    '::1',
    '0:0:0:0:0:0:0:1',
    'fd00:ec2::254',
    'fd12:3456:789a::1',
    'fe80::1',
    'febf::1',
    'ff05::2',
    '64:ff9b::',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
    'fc00::1',
    'ff0e::1',
    '4000::1',
    '3fff::1',
  ];
  return [...plain, ...ipv6.map((address) => `[${address}]`)];
}

describe('production', () => {
  test(`${closedHosts().length} spellings of private addresses are refused, at creation and when sending`, async () => {
    expect(closedHosts().length).toBeGreaterThanOrEqual(200);
    await using loopback = await serve(ok);
    await withSender({ guard: publicHttpsOnly }, async (sender) => {
      for (const host of closedHosts()) {
        const url = `https://${host}:${loopback.port}/`;
        expect(sender.urlFault(url), url).toEqual(expect.any(String));
        expect(await post(sender, url), url).toEqual(refused);
      }
    });
    expect(loopback.connections()).toBe(0);
  });

  test.each([
    'http://hooks.acme.example/',
    'ws://hooks.acme.example/',
    'file:///etc/passwd',
    'https:///etc/passwd',
    'https://alice@hooks.acme.example/',
    'https://hooks.acme.example/#a',
    'https://hooks.acme.example/a b',
    'https://hooks.acme.example/\n',
    ' https://hooks.acme.example/',
    'https://h\u00f6oks.acme.example/',
    '',
  ])('%j is not a valid URL for events', async (url) => {
    await withSender({ guard: publicHttpsOnly }, async (sender) => {
      expect(sender.urlFault(url)).toEqual(expect.any(String));
      expect(await post(sender, url)).toEqual(refused);
    });
  });

  test.each(['https://hooks.acme.example/a?b=c', 'https://8.8.8.8/', 'https://[2606:4700::1111]:8443/'])(
    'production: %s is allowed',
    async (url) => {
      await withSender({ guard: publicHttpsOnly }, async (sender) =>
        expect(sender.urlFault(url)).toBeUndefined(),
      );
    },
  );

  test('a public name that resolves to a private address, even among others, is refused', async () => {
    await using loopback = await serve(ok);
    const answers: Record<string, string[]> = {
      'private.acme.example': ['127.0.0.1'],
      'mixed.acme.example': ['8.8.8.8', '127.0.0.1'],
      'mapped.acme.example': ['::ffff:127.0.0.1'],
      'six.acme.example': ['::1'],
      'absent.acme.example': [],
    };
    const lookup = fakeLookup((name) => answers[name] ?? []);
    await withSender({ guard: publicHttpsOnly, lookup }, async (sender) => {
      for (const name of Object.keys(answers)) {
        expect(sender.urlFault(`https://${name}:${loopback.port}/`)).toBeUndefined();
        expect(await post(sender, `https://${name}:${loopback.port}/`), name).toEqual(refused);
      }
    });
    expect(loopback.connections()).toBe(0);
  });
});

/** Answers like a name server under an attacker's control. */
function fakeLookup(resolve: (name: string) => readonly string[]): LookupFunction {
  return (name, _options, callback) => {
    const addresses = resolve(name).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    callback(null, addresses);
  };
}

// Simulates the public internet: 127.0.0.2 counts as public, 127.0.0.1 does not.
const secondIsPublic: WebhookGuard = {
  allowsHttp: true,
  allowsAddress: (address) => address === '127.0.0.2',
};

test('a name that changes its address between two connections is checked again', async () => {
  await using own = await serve((request, response) => {
    // The connection is closed, so that the next event resolves the name again.
    request.resume().on('end', () => response.writeHead(200, { connection: 'close' }).end());
  }, '127.0.0.2');
  await using victim = await serve(ok);
  let asked = 0;
  const lookup = fakeLookup(() => {
    asked += 1;
    return asked % 2 === 1 ? ['127.0.0.2'] : ['127.0.0.1'];
  });
  await withSender({ guard: secondIsPublic, lookup }, async (sender) => {
    const send = (port: number) => post(sender, `http://rebinding.acme.example:${port}/`);
    expect(await send(own.port)).toMatchObject({ status: 200 });
    expect(await send(victim.port)).toEqual(refused);
    expect(asked).toBe(2);
    // The checked answer is the one that is used: no second look-up follows.
    expect(await send(own.port)).toMatchObject({ status: 200 });
    expect(asked).toBe(3);
  });
  expect(victim.connections()).toBe(0);
});

test('a redirect to a private address is a response and is not followed', async () => {
  await using victim = await serve(ok);
  await using own = await serve((_, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${victim.port}/` }).end();
  }, '127.0.0.2');
  await withSender({ guard: secondIsPublic }, async (sender) => {
    expect(await post(sender, `http://127.0.0.2:${own.port}/`)).toMatchObject({
      status: 302,
      failure: undefined,
    });
  });
  expect(victim.connections()).toBe(0);
});

describe('the sandbox', () => {
  let sender: WebhookSender;
  beforeAll(() => {
    sender = createWebhookSender({ guard: anyAddress });
  });
  afterAll(() => sender.close());

  test('payloads arrive unchanged, and connections are kept alive', async () => {
    const bodies: string[] = [];
    await using server = await serve((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        bodies.push(
          `${request.method} ${request.url} ${request.headers['content-type']} ${Buffer.concat(chunks)}`,
        );
        response.writeHead(201).end('thanks');
      });
    });
    for (let count = 0; count < 10; count += 1) {
      const outcome = await post(sender, `http://localhost:${server.port}/hook?a=b`);
      expect(outcome).toEqual({ status: 201, failure: undefined, durationMs: expect.any(Number) });
    }
    expect(bodies).toEqual(Array(10).fill('POST /hook?a=b application/json {"type":"wallet.archived"}'));
    // A second connection if the first is not yet free when the next event is sent.
    expect(server.connections()).toBeLessThanOrEqual(2);
  });

  test('an endpoint that never answers times out, an absent one fails immediately', async () => {
    await using silent = await serve(() => undefined);
    expect(await post(sender, `http://127.0.0.1:${silent.port}/`, 50)).toMatchObject({
      status: undefined,
      failure: 'timeout',
    });
    const gone = await serve(ok);
    await gone[Symbol.asyncDispose]();
    expect(await post(sender, `http://127.0.0.1:${gone.port}/`)).toMatchObject({
      failure: 'connection_failed',
    });
  });

  test('a connection that is never established ends the attempt, and the next one does not wait for it', async () => {
    const certificate = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
    let requests = 0;
    await using server = await serve(
      (request, response) => {
        requests += 1;
        ok(request, response);
      },
      '127.0.0.1',
      certificate,
    );
    // Accepts connections without a TLS handshake while it is faulty.
    let isFaulty = true;
    const connections: { socket: Socket; end: Promise<unknown> }[] = [];
    const door = createTcpServer((socket) => {
      const end = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve));
      connections.push({ socket, end });
      if (isFaulty) socket.resume();
      else server.server.emit('connection', socket);
    }).listen(0, '127.0.0.1');
    await once(door, 'listening');
    const isReached = once(door, 'connection');
    const url = `https://localhost:${(door.address() as AddressInfo).port}/`;
    try {
      await withSender({ guard: anyAddress, ca: certificate.ca, connectMs: 800 }, async (own) => {
        expect(await post(own, url, 50)).toMatchObject({ status: undefined, failure: 'timeout' });
        await isReached;
        await connections[0]!.end;
        expect(await post(own, url)).toMatchObject({ status: undefined, failure: 'timeout' });
        isFaulty = false;
        expect(await post(own, url)).toMatchObject({ status: 200 });
      });
      expect([connections.length, requests]).toEqual([3, 1]);
    } finally {
      for (const { socket } of connections) socket.destroy();
      door.close();
    }
  });

  test('of an endless body 64 KB are read, then the connection is closed; the status counts', async () => {
    let written = 0;
    let ended = (): void => undefined;
    const hasEnded = new Promise<void>((resolve) => {
      ended = resolve;
    });
    await using server = await serve((request, response) => {
      const chunk = Buffer.alloc(16 * 1024);
      const pour = (): void => {
        while (response.write(chunk)) written += chunk.length;
      };
      response.on('drain', pour).on('close', ended);
      request.resume().on('end', pour);
    });
    expect(await post(sender, `http://127.0.0.1:${server.port}/`)).toMatchObject({ status: 200 });
    await hasEnded;
    // Plus the contents of the buffers in between.
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });

  test('endless headers and invalid HTTP are not responses', async () => {
    await using server = await serve((request, response) => {
      request.socket.end('SSH-2.0-OpenSSH\r\n');
      response.destroy();
    });
    expect(await post(sender, `http://127.0.0.1:${server.port}/`)).toMatchObject({
      failure: 'connection_failed',
    });
    await using large = await serve((_, response) => {
      response.writeHead(200, { filler: 'x'.repeat(100_000) }).end();
    });
    expect(await post(sender, `http://127.0.0.1:${large.port}/`)).toMatchObject({
      failure: 'connection_failed',
    });
  });

  test('an untrusted certificate ends the attempt; a trusted one is accepted', async () => {
    const certificate = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
    await using server = await serve(ok, '127.0.0.1', certificate);
    const url = `https://localhost:${server.port}/`;
    expect(await post(sender, url)).toMatchObject({ failure: 'connection_failed' });
    const lookup = systemLookup as LookupFunction;
    await withSender({ guard: anyAddress, lookup, ca: certificate.ca }, async (trusting) =>
      expect(await post(trusting, url)).toMatchObject({ status: 200 }),
    );
  });
});
