import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CustomerKind, FiatProvider } from '../../../src/ports/fiat.ts';
import { type BridgeOperation, readBridgeDocument } from './bridge-document.ts';
import { type BridgeReply, bridgeHandlers, type HandlerInput, refused } from './bridge-handlers.ts';

/** A failure that replaces the response to the next request. */
export type Mishap =
  | { readonly kind: 'silence' }
  /** The request takes effect, but its response is lost. */
  | { readonly kind: 'cut' }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** The member of the body that is refused. */
      readonly member?: string;
    }
  | { readonly kind: 'text'; readonly text: string }
  /** The response is changed. */
  | { readonly kind: 'changed'; readonly change: (body: Record<string, unknown>) => unknown };

/** A received request. */
interface Seen {
  readonly operation: string;
  readonly key: string | undefined;
  readonly body: unknown;
}

export interface BridgeService extends AsyncDisposable {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** All requests, including refused ones. */
  readonly seen: readonly Seen[];
  /** Requests and responses that the document does not allow. */
  readonly faults: readonly string[];
  /** Makes the next requests fail, one after the other. Replaces earlier plans. */
  next(...mishaps: readonly Mishap[]): void;
}

const API_KEY = 'sk-test-0123456789';
const DAY_MS = 86_400_000;

/**
 * A local provider that responds according to the document of the real provider, with a simulated bank. Both sides
 * must conform to the document. Every violation is in `faults`.
 */
export async function openBridgeService(
  bank: FiatProvider,
  clock: { now(): number },
): Promise<BridgeService> {
  const operations = readBridgeDocument();
  const world = { bank, clock, kinds: new Map<string, CustomerKind>() };
  const handlers = bridgeHandlers(world);
  const seen: Seen[] = [];
  const faults: string[] = [];
  const mishaps: Mishap[] = [];
  const remembered = new Map<
    string,
    { readonly request: string; readonly reply: BridgeReply; readonly atMs: number }
  >();

  const answer = async (request: IncomingMessage, text: string): Promise<BridgeReply> => {
    const url = new URL(request.url ?? '', 'http://bridge');
    const path = url.pathname.replace(/^\/v0/, '');
    const operation = operations.find((each) => each.method === request.method && each.path.test(path));
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const key = request.headers['idempotency-key'] as string | undefined;
    seen.push({ operation: operation?.name ?? `${request.method} ${path}`, key, body });
    if (request.headers['api-key'] !== API_KEY) return refused(401, 'invalid');
    if (operation === undefined) return refused(404, 'not_found');
    if ((key === undefined) !== (operation.method !== 'POST'))
      faults.push(`${operation.name}: idempotency key`);
    const wrong = operation.faultsOfRequest(url.searchParams, body);
    faults.push(...wrong);
    if (wrong.length > 0) return refused(400, 'invalid_parameters');
    const input = { ids: operation.path.exec(path)!.slice(1), query: url.searchParams, body, key };
    const reply = await once(operation, input, `${path} ${text}`);
    faults.push(...operation.faultsOfResponse(reply.status, reply.body));
    return reply;
  };

  /** A key identifies its first request for a day. Afterwards it is refused. */
  const once = async (
    operation: BridgeOperation,
    input: HandlerInput,
    request: string,
  ): Promise<BridgeReply> => {
    const handle = handlers[operation.name];
    if (handle === undefined) throw new Error(`no handler of ${operation.name}`);
    const success = operation.successStatus;
    if (input.key === undefined) return handle(input, success);
    const known = remembered.get(input.key);
    if (known !== undefined && (known.request !== request || clock.now() - known.atMs > DAY_MS)) {
      return refused(422, 'idempotency_key_reused');
    }
    if (known !== undefined) return known.reply;
    const reply = await handle(input, success);
    remembered.set(input.key, { request, reply, atMs: clock.now() });
    return reply;
  };

  const server = createServer((request, response) => {
    void readAll(request).then(async (text) => {
      const mishap = mishaps.shift();
      if (mishap?.kind === 'silence') return;
      if (mishap?.kind === 'status') {
        const { status, headers, member } = mishap;
        const key = member === undefined ? undefined : { [member]: 'not accepted' };
        return send(response, refused(status, 'busy', key), headers);
      }
      const reply = await answer(request, text).catch((error: unknown) => {
        faults.push(String(error));
        return refused(500, 'unexpected');
      });
      if (mishap?.kind === 'cut') request.socket.destroy();
      else if (mishap?.kind === 'text') response.end(mishap.text);
      else if (mishap?.kind === 'changed') {
        send(response, { ...reply, body: mishap.change(reply.body as Record<string, unknown>) });
      } else send(response, reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    ...{ seen, faults, apiKey: API_KEY, baseUrl: `http://127.0.0.1:${port}/v0` },
    next: (...more) => void mishaps.splice(0, mishaps.length, ...more),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function send(
  response: ServerResponse,
  { status, body }: BridgeReply,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
