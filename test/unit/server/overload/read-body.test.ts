import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { createBodyReader, MAX_BODY_BYTES } from '../../../../src/server/read-body.ts';
import { appHeaders, startToyServer, type ToyServer, toyOperations, toyValidators } from '../toy-server.ts';

const json = { ...appHeaders, 'content-type': 'application/json' };
const plainHeaders = Object.entries(json).map(([name, value]) => `${name}: ${value}`);

/**
 * Sends the head and the given part of the body, and returns what the server sends until it closes or stops sending.
 */
function exchangeRaw(server: ToyServer, head: readonly string[], body: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let text = '';
    socket.setTimeout(5_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve(text) : reject(error),
    );
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(body);
  });
}

const post = ['POST /v1/toys HTTP/1.1', 'host: toys.example', 'connection: close', ...plainHeaders];

function inChunksOf(size: number, count: number): Buffer {
  const chunk = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`;
  return Buffer.from(`${chunk.repeat(count)}0\r\n\r\n`);
}

test('a body in any chunks arrives byte for byte', async () => {
  await using server = await startToyServer({
    run: async ({ rawBody }) => ({ status: 200, body: rawBody.toString('hex') }),
  });
  const text = `{"name":"${'bär'.repeat(9_000)}"}`;
  const bytes = Buffer.from(text);
  for (const size of [70, 1_000, 16_384, 20_000]) {
    const pieces: Buffer[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      const piece = bytes.subarray(start, start + size);
      pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    }
    const sent = Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
    const answer = await exchangeRaw(server, [...post, 'transfer-encoding: chunked'], sent);
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4) === JSON.stringify(bytes.toString('hex'))).toBe(true);
  }
});

test('thousands of tiny chunks are refused', async () => {
  await using server = await startToyServer({ run: () => expect.unreachable('the operation was run') });
  const answer = await exchangeRaw(server, [...post, 'transfer-encoding: chunked'], inChunksOf(1, 50_000));
  expect(answer).toContain('400 Bad Request');
  expect(answer).toContain('the body was sent in too many small chunks');
});

test('no part of a body is buffered before the credentials are accepted', async () => {
  await using server = await startToyServer({
    readBody: () => expect.unreachable('the body was read'),
  });
  const head = [
    'POST /v1/toys HTTP/1.1',
    'host: toys.example',
    'content-length: 1000000',
    'connection: close',
  ];
  const answer = await exchangeRaw(server, head, Buffer.alloc(1_000_000));
  expect(answer).toContain('401 Unauthorized');
});

test('the body of a request that needs neither credentials nor a body is not read', async () => {
  await using server = await startToyServer({
    readBody: () => expect.unreachable('the body was read'),
  });
  const head = ['GET /v1/catalogue.json HTTP/1.1', 'host: toys.example', 'content-length: 1000000'];
  // The connection goes on: the body was discarded, not mistaken for a request.
  const next = 'GET /v1/catalogue.json HTTP/1.1\r\nhost: toys.example\r\nconnection: close\r\n\r\n';
  const answer = await exchangeRaw(server, head, Buffer.concat([Buffer.alloc(1_000_000), Buffer.from(next)]));
  expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
});

test('bodies beyond the total budget, or that of one address, get 503 until others are done', async () => {
  for (const budget of [
    { totalBytes: 65_536, bytesPerAddress: MAX_BODY_BYTES },
    { totalBytes: MAX_BODY_BYTES, bytesPerAddress: 65_536 },
  ]) {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let running = 0;
    await using server = await startToyServer({
      readBody: createBodyReader(budget),
      run: async () => {
        running += 1;
        await held;
        return { status: 200, body: 'done' };
      },
    });
    const body = `{"name":"${'x'.repeat(40_000)}"}`;
    const first = server.fetch('POST', '/v1/toys', { headers: json, body });
    await expect.poll(() => running).toBe(1);
    const second = await server.fetch('POST', '/v1/toys', { headers: json, body });
    expect(second.status).toBe(503);
    expect(second.headers.get('retry-after')).toBe('1');
    release();
    expect((await first).status).toBe(200);
    // The budget of the first one is released.
    await expect
      .poll(async () => (await server.fetch('POST', '/v1/toys', { headers: json, body })).status)
      .toBe(200);
  }
});

afterEach(() => void vi.useRealTimers());

/** Like `expect.poll`, which would advance the fake timers. */
async function until(isTrue: () => boolean): Promise<void> {
  const endMs = performance.now() + 5_000;
  while (!isTrue() && performance.now() < endMs) await nextTurn();
  expect(isTrue()).toBe(true);
}

/** A token endpoint, with a client that sends all of a request but the last byte of its body. */
async function startSlowClient(headers: Record<string, string>) {
  const createToy = toyOperations.find(({ id }) => id === 'createToy')!;
  let reading = 0;
  const readBody = createBodyReader();
  const server = await startToyServer({
    operations: [{ ...createToy, id: 'exchangeToken', path: '/token', security: 'oauth-client' }],
    validators: { exchangeToken: toyValidators.createToy! },
    readBody: (...given) => {
      reading += 1;
      return readBody(...given);
    },
  });
  server.directory.records[0] = { ...server.directory.records[0]!, admitsPublicClients: true };
  const head = ['POST /token HTTP/1.1', 'host: toys.example', 'content-length: 15'];
  const sent = [...head, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
  const socket: Socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  const seen = { text: '', isClosed: false };
  socket.on('data', (chunk) => {
    seen.text += chunk.toString();
  });
  socket.on('close', () => {
    seen.isClosed = true;
  });
  const begin = async (): Promise<void> => {
    reading = 0;
    socket.write(`${sent.join('\r\n')}\r\n\r\n{"name":"bear"`);
    await until(() => reading === 1);
  };
  const dispose = async (): Promise<void> => {
    socket.destroy();
    await server[Symbol.asyncDispose]();
  };
  return { server, seen, begin, end: () => socket.write('}'), [Symbol.asyncDispose]: dispose };
}

const publicClient = { 'service-app-id': appHeaders['service-app-id'], 'content-type': 'application/json' };

test('a caller that sends its credentials in the body has two seconds for it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await using client = await startSlowClient(publicClient);
  await client.begin();
  vi.advanceTimersByTime(1_999);
  await nextTurn();
  expect(client.seen.isClosed).toBe(false);
  vi.advanceTimersByTime(1);
  await until(() => client.seen.isClosed);
  expect(client.seen.text).toBe('');
  const aborted = 'the client closed the connection before the request was complete';
  await until(() => client.server.log.lines.some(({ message }) => message === aborted));
});

test.each([
  ['a body with credentials that arrived in time has no limit left', publicClient, 1_999],
  ['a body without credentials may take longer', json, 5_000],
])('%s', async (_, headers, passedMs) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await using client = await startSlowClient(headers);
  await client.begin();
  vi.advanceTimersByTime(passedMs);
  await nextTurn();
  expect(client.seen.isClosed).toBe(false);
  client.end();
  await until(() => client.seen.text.includes('200 OK'));
  vi.advanceTimersByTime(3_000);
  // On the same connection.
  await client.begin();
  client.end();
  await until(() => client.seen.text.match(/200 OK/g)?.length === 2);
});
