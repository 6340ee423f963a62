import { readFileSync } from 'node:fs';
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { temporaryCertificateFolder } from '../../adapters/certificate.ts';
import { asStarted } from '../../config/client.ts';
import { ConfigError } from '../../config/config.ts';
import { StartError } from '../../config/start-error.ts';
import { listRunningSandboxes } from './running-sandboxes.ts';
import {
  DEFAULT_URL,
  locateSandbox,
  type SandboxAddress,
  type SandboxPlace,
  SandboxUnavailableError,
} from './sandbox-address.ts';

/** Calls the control plane of a running sandbox. */
export interface SandboxClient {
  /** Returns the sandbox's URL. Before the first call, returns the default URL. */
  readonly url: () => string;
  /**
   * Calls the control plane.
   *
   * @throws SandboxUnavailableError
   * @throws ConfigError if the sandbox returns 400.
   * @throws StartError for any other failure.
   */
  call<Body>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, options?: CallOptions): Promise<Body>;
  /**
   * Returns where the sandbox currently is, with its credentials.
   *
   * @throws SandboxUnavailableError, StartError
   */
  place(): SandboxPlace;
  /**
   * Sends any request and returns any response.
   *
   * @throws SandboxUnavailableError, StartError
   */
  send(request: SentRequest): Promise<ReceivedResponse>;
  close(): void;
}

export interface SentRequest {
  readonly method: string;
  /** The path and the query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyText: string | undefined;
}

export interface ReceivedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface CallOptions {
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** How long to wait for the response. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** Returns the advice that ends an error: which running sandboxes `--url` can select, or how to start one. */
function howToFind(): string {
  const running = listRunningSandboxes().map(({ base_url: url }) => url);
  return running.length === 0
    ? 'start one with `custos sandbox`, or pass --url or --ready-file'
    : `select a running one with --url: ${running.slice(0, 10).join(', ')}`;
}

/** Creates a client. Each call finds the sandbox again, because a restarted sandbox may have another address. */
export function openSandboxClient(address: SandboxAddress): SandboxClient {
  let connected:
    | { url: string; ca: string | undefined; controlToken: string | undefined; agent: HttpAgent }
    | undefined;
  const locate = () => {
    const { url, caFile, controlToken } = locateSandbox(address);
    const ca = url.startsWith('https:') ? trustedAuthorities(address, caFile) : undefined;
    if (connected?.url === url && connected.ca === ca && connected.controlToken === controlToken) {
      return connected;
    }
    connected?.agent.destroy();
    const agent =
      ca === undefined ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ ca, keepAlive: true });
    connected = { url, ca, controlToken, agent };
    return connected;
  };
  return {
    url: () => connected?.url ?? address.url ?? DEFAULT_URL,
    async call<Body>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, options: CallOptions = {}) {
      const { url, agent, controlToken } = locate();
      const { body, signal, timeoutMs } = options;
      const { status, text } = await exchange(
        new URL(`/_sandbox${path}`, url),
        {
          method,
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(controlToken === undefined ? {} : { authorization: `Bearer ${controlToken}` }),
          },
          bodyText: body === undefined ? undefined : JSON.stringify(body),
        },
        { agent, signal, timeoutMs },
      );
      return readAnswer(url, status, text) as Body;
    },
    place: () => locateSandbox(address),
    send(request) {
      const { url, agent } = locate();
      return exchange(new URL(request.target, url), request, { agent });
    },
    close: () => connected?.agent.destroy(),
  };
}

/**
 * Returns the PEM of the authorities to trust: from the file if one is given, else from the folder where a sandbox
 * stores them.
 */
function trustedAuthorities({ data }: SandboxAddress, caFile: string | undefined): string {
  if (caFile !== undefined) {
    try {
      return readFileSync(caFile, 'utf8');
    } catch {
      throw new ConfigError('invalid option:', [`--ca-file: \`${caFile}\` cannot be read`]);
    }
  }
  const folder = data ?? temporaryCertificateFolder();
  try {
    return readFileSync(join(folder, 'ca.pem'), 'utf8');
  } catch {
    return '';
  }
}

interface ExchangeOptions {
  readonly agent: HttpAgent;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

function exchange(
  url: URL,
  { method, headers, bodyText }: Omit<SentRequest, 'target'>,
  { agent, signal, timeoutMs = DEFAULT_TIMEOUT_MS }: ExchangeOptions,
): Promise<ReceivedResponse> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const limit = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve, reject) => {
    const refuse = (error: Error): void => reject(failure(error, url.origin, signal));
    const sent = request(
      url,
      { method, agent, headers, signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) },
      (response) => {
        const { statusCode: status = 0, statusMessage: statusText = '', headers: received } = response;
        readText(response).then((text) => resolve({ status, statusText, headers: received, text }), refuse);
      },
    );
    sent.once('error', refuse);
    sent.end(bodyText);
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function failure(cause: Error, origin: string, signal: AbortSignal | undefined): Error {
  if (signal?.aborted) return signal.reason as Error;
  const { code = '' } = cause as NodeJS.ErrnoException;
  if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
    return new StartError(
      `the certificate of ${origin} is not trusted (${cause.message}); pass the sandbox's authority with --ca-file, or its folder with --data`,
      { cause },
    );
  }
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') {
    return new StartError(`${origin} does not support TLS; is it a sandbox?`, { cause });
  }
  if (code === 'ECONNRESET') {
    return new SandboxUnavailableError(
      `${origin} cut the connection without a response; if a fault rule did, ${asStarted('`custos why`')} names it`,
      { cause },
    );
  }
  return new SandboxUnavailableError(`no sandbox responds at ${origin}; ${howToFind()}`, { cause });
}

function readAnswer(origin: string, status: number, text: string): unknown {
  let body: { error?: unknown };
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new StartError(`${origin} responds, but is not a Custos sandbox; ${howToFind()}`, { cause });
  }
  if (status === 200) return body;
  const error = String(body.error);
  if (status === 400) throw new ConfigError('the sandbox refused the request:', [error]);
  // A server that is not a sandbox requires credentials or does not have the path.
  if (status === 401 || (status === 404 && error === 'Not found')) {
    throw new StartError(
      `${origin} responds, but has no control plane for this; is it a \`custos sandbox\`?`,
    );
  }
  throw new StartError(status === 404 ? error : `the sandbox returned ${status}: ${error}`);
}
