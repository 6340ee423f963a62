import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ServingCustos, serveCustos } from '../../support/run-custos.ts';

// A server with the heap of a small container, attacked by clients without credentials.
let server: ServingCustos;
beforeAll(async () => {
  server = await serveCustos(['sandbox', '--plain-http', '--log-level', 'silent'], {
    env: { NODE_OPTIONS: '--max-old-space-size=512' },
  });
});
afterAll(() => server.stop());

const head = ['POST /v1/wallets HTTP/1.1', 'host: 127.0.0.1', 'content-type: application/json'].join('\r\n');

/**
 * Connects and sends the pieces, each as soon as the server has read the previous one; resolves when the connection
 * is closed.
 */
function send(pieces: readonly Buffer[]): { socket: Socket; answer: Promise<string> } {
  const { port } = new URL(server.ready.base_url);
  const socket = connect(Number(port), '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  socket.on('error', () => undefined);
  const answer = new Promise<string>((resolve) => socket.once('close', () => resolve(text)));
  const next = (index: number): void => {
    const piece = pieces[index];
    if (piece !== undefined && !socket.destroyed) socket.write(piece, () => next(index + 1));
  };
  next(0);
  return { socket, answer };
}

/** The memory of the server process in MB; undefined if the system does not report it. */
function residentMegabytes(): number | undefined {
  const status = `/proc/${server.process.pid}/status`;
  if (!existsSync(status)) return undefined;
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(status, 'utf8'))?.[1]) / 1024;
}

async function expectAtWork(before: number | undefined, megabytes: number): Promise<void> {
  const { status } = await server.call('GET', '/v1/wallets');
  expect(status).toBe(200);
  if (before !== undefined) expect(residentMegabytes()! - before).toBeLessThan(megabytes);
}

test('bodies of a million one-byte chunks are refused before they fill the heap', async () => {
  await server.call('GET', '/v1/wallets');
  const before = residentMegabytes();
  const chunks = Buffer.from('1\r\nx\r\n'.repeat(65_536));
  const attackers = Array.from({ length: 16 }, () =>
    send([Buffer.from(`${head}\r\ntransfer-encoding: chunked\r\n\r\n`), ...Array(16).fill(chunks)]),
  );
  const answers = await Promise.all(attackers.map(({ answer }) => answer));
  // The refusal may be lost with the connection if the attacker continues to send.
  for (const answer of answers) expect(answer).toMatch(/^(HTTP\/1\.1 401 |$)/);
  await expectAtWork(before, 200);
});

test('announced bodies that are never sent take no memory', async () => {
  const before = residentMegabytes();
  const body = Buffer.alloc(1_000_000, 'x');
  const attackers = Array.from({ length: 600 }, () =>
    send([Buffer.from(`${head}\r\ncontent-length: 1000001\r\n\r\n`), body]),
  );
  await expect
    .poll(() => server.call('GET', '/v1/wallets').then(({ status }) => status), { timeout: 20_000 })
    .toBe(200);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  // Half of what was sent. What was read and let go takes 30 to 150 until it is collected, however many send.
  await expectAtWork(before, 300);
  for (const { socket } of attackers) socket.destroy();
});

test('two thousand idle connections take little memory and do not block other clients', async () => {
  const before = residentMegabytes();
  const { port } = new URL(server.ready.base_url);
  const idle = await Promise.all(
    Array.from(
      { length: 2_000 },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect(Number(port), '127.0.0.1', () => resolve(socket));
          socket.once('error', reject);
        }),
    ),
  );
  await expectAtWork(before, 100);
  for (const socket of idle) socket.destroy();
});
