import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import document from '../../../openapi/openapi.json' with { type: 'json' };

// Stands for what proxies before a server answer. The id in the path, the `external_id` or the end of the `url` lists
// the answers to one call: `502-200` refuses the first attempt. It is a process of its own, because its answers are not
// those of the API, which the ledger compares with the document.
//
// A letter after the status: `c` refuses as the API does, with a clock ten seconds ahead of that of the suite. `s`
// accepts only the same headers as the attempt before, `n` only a later deadline that is
// signed with the same idempotency key, `k` only the same key. `h` answers with a page, `j` with a page that it calls JSON.

const SUITE_TIME = Date.UTC(2026, 0, 1);

export interface Gateway {
  readonly port: number;
  stop(): void;
}

/** Starts this file as a process. */
export async function startGateway(): Promise<Gateway> {
  // `NODE_OPTIONS` loads the ledger.
  const env = { ...process.env, NODE_OPTIONS: '' };
  const stdio = ['pipe', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, [import.meta.filename], { env, stdio: [...stdio] });
  const [port] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string];
  return { port: Number(port), stop: () => child.kill() };
}

/** A complete answer of the document: clients may check it. */
function exampleOf(sent: string): object {
  const { paths } = document;
  const operation = sent.includes('event_types')
    ? paths['/v1/webhooks'].post
    : paths['/v1/wallets/{wallet_id}'].get;
  return Object.values(operation.responses['200'].content['application/json'].examples)[0]!.value;
}

function idOf(script: string, sent: string): object {
  return sent.includes('event_types') ? { url: `http://127.0.0.1:3000/${script}` } : { external_id: script };
}

type Sent = IncomingMessage['headers'];

/** Whether a retry has the headers that its letter demands. */
function isAsDemanded(letter: string, sent: Sent, before: Sent = {}): boolean {
  const isSame = (name: string) => sent[`service-${name}`] === before[`service-${name}`];
  const isLater = Number(sent['service-request-expiry']) > Number(before['service-request-expiry']);
  const isSigned = sent['service-authorization-signature'] !== undefined;
  switch (letter) {
    case 'k':
      return isSame('idempotency-key');
    case 's':
      return isSame('idempotency-key') && isSame('request-expiry') && isSame('authorization-signature');
    case 'n':
      return isSame('idempotency-key') && isLater && isSigned && !isSame('authorization-signature');
    default:
      return true;
  }
}

function serve(): void {
  const attempts = new Map<string, number>();
  const before = new Map<string, Sent>();
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request.setEncoding('utf8')) text += part;
    const sent = text === '' ? String(request.url) : text;
    const script =
      /(?:\/|"external_id":\s*")([\dcdhjklnsxyz]+(?:-[\dcdhjklnsxyz]+)*)(?="|\/archive$|$)/.exec(sent)?.[1] ??
      '501';
    const answers = script.split('-');
    const attempt = attempts.get(script) ?? 0;
    attempts.set(script, attempt + 1);
    const answer = answers[attempt % answers.length]!;
    const isRefused = !isAsDemanded(answer.slice(3), request.headers, before.get(script));
    before.set(script, request.headers);
    const status = isRefused ? 409 : Number.parseInt(answer, 10);
    if (answer.endsWith('x')) response.setHeader('retry-after', 'soon');
    if (answer.endsWith('y')) response.setHeader('retry-after', '864000000000');
    if (answer.endsWith('z')) response.setHeader('retry-after', '0');
    if (status === 302) response.setHeader('location', '/v1/wallets/200');
    if (answer.endsWith('c')) response.setHeader('date', new Date(SUITE_TIME + 10_000).toUTCString());
    const isPage = status !== 200 || /[hj]$/.test(answer);
    const isJson = !isPage || /[cj]$/.test(answer);
    response.writeHead(status, { 'content-type': isJson ? 'application/json' : 'text/html' });
    if (answer.endsWith('d')) {
      // A body that never ends, in which no wait is long.
      const drip = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(drip));
      return;
    }
    if (answer.endsWith('l')) response.write(Buffer.alloc(33 * 1024 * 1024, ' '));
    response.end(
      answer.endsWith('c')
        ? JSON.stringify({ error: 'the request has expired', code: 'request_expired' })
        : isPage
          ? '<html>the proxy says no</html>'
          : JSON.stringify({ ...exampleOf(sent), ...idOf(script, sent) }),
    );
  });
  server.listen(0, '127.0.0.1', () => process.stdout.write(String((server.address() as AddressInfo).port)));
}

if (import.meta.main) {
  serve();
  // A test run that is killed closes it.
  process.stdin.resume().on('end', () => process.exit());
}
