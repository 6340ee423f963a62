import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { createBodyReader, MAX_BODY_BYTES } from '../../../src/http/read-body.ts';
import { appHeaders, startToyServer, type ToyServer } from './toy-server.ts';

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
