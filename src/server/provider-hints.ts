import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../errors.ts';
import type { FiatEnvironment, FiatHint, FiatProvider, FiatProviders } from '../ports/fiat.ts';
import type { Clock, Log } from '../ports/runtime.ts';
import type { Mount } from './app.ts';
import { errorAnswer } from './error-response.ts';
import { createBodyReader, discardBody, RequestAbortedError } from './read-body.ts';
import { createTransportGuard, type TransportRules } from './transport-guards.ts';

/** The provider that sent a notification, and its environment. */
interface HintSource {
  readonly provider: string;
  readonly environment: FiatEnvironment;
}

interface ProviderHintsOptions {
  readonly fiatProviders: FiatProviders;
  /** Returns the real time, even in a sandbox, because notifications contain the real time. */
  readonly clock: Clock;
  readonly log: Log;
  readonly newRequestId: () => string;
  readonly transport: TransportRules;
  /** Schedules an earlier poll of the resources that a notification names. */
  take(source: HintSource, hints: readonly FiatHint[]): Promise<void>;
}

/** CHOICE: the maximum size of a notification, which contains one object. */
const MAX_BYTES = 65_536;
const PATH = /^\/provider_hints\/([a-z0-9_]{1,32})\/([a-z]{1,16})$/;

/**
 * Serves `POST /provider_hints/{provider}/{environment}`, where fiat providers send notifications. A signed
 * notification only triggers an earlier poll of the provider; its content is not stored. The path is not in the API
 * document. The signature is the only credential.
 */
export function providerHints(options: ProviderHintsOptions): Mount {
  const guard = createTransportGuard(options.transport);
  const readBody = createBodyReader({ totalBytes: 64 * MAX_BYTES, bytesPerAddress: 32 * MAX_BYTES });

  const handle = async (request: IncomingMessage): Promise<void> => {
    guard.scheme(request);
    const { source, provider } = findSource(request, options.fiatProviders);
    const body = await readBody(request, guard.clientAddress(request), MAX_BYTES);
    try {
      const headers = headersOf(request);
      const hints = provider.readHint({ headers, body: body.bytes, nowMs: options.clock.now() });
      if (hints === undefined) {
        throw new ApiError('invalid_request', 'expected a notification that the provider signed recently');
      }
      await options.take(source, hints);
    } finally {
      body.release();
    }
  };

  return {
    path: /^\/provider_hints\//,
    async handle(request, response) {
      const id = options.newRequestId();
      try {
        await handle(request);
        send(response, { status: 200, body: {} }, id);
      } catch (error) {
        discardBody(request);
        if (error instanceof RequestAbortedError) return;
        send(response, errorAnswer(error, { id }, options.log), id);
      }
    },
  };
}

function findSource(
  { method, url = '' }: IncomingMessage,
  fiatProviders: FiatProviders,
): { readonly source: HintSource; readonly provider: FiatProvider } {
  const [, name, environment] = PATH.exec(url) ?? [];
  if (name === undefined) throw new ApiError('not_found');
  const source = { provider: name, environment: environment as FiatEnvironment };
  const provider = fiatProviders.find(source.provider, source.environment);
  if (provider === undefined) throw new ApiError('not_found');
  if (method !== 'POST') throw new ApiError('method_not_allowed', undefined, { headers: { allow: 'POST' } });
  return { source, provider };
}

function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
}

function send(
  response: ServerResponse,
  { status, body, headers }: { status: number; body?: unknown; headers?: Readonly<Record<string, string>> },
  id: string,
): void {
  const text = JSON.stringify(body ?? {});
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-request-id': id,
    ...headers,
  });
  response.end(text);
}
