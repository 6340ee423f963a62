import { readdirSync, readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { temporaryCertificateFolder } from '../adapters/certificate.ts';
import { ConfigError } from '../config.ts';
import { StartError } from '../start-error.ts';

/** How to find a running sandbox. Every part may be left out. */
export interface SandboxAddress {
  readonly url?: string;
  /** The file that `custos sandbox --ready-file` writes. */
  readonly readyFile?: string;
  /** PEM of the certificate authority to trust. */
  readonly caFile?: string;
  /** The folder of `custos sandbox --data`, which holds its certificate. */
  readonly data?: string;
}

/** Nobody answers where the sandbox should be: perhaps not yet, or not any more. */
export class SandboxAwayError extends StartError {}

/** Calls the control plane of a running sandbox. */
export interface SandboxClient {
  /** Where it is, as far as known. */
  readonly url: () => string;
  /**
   * @throws SandboxAwayError; ConfigError for a call that the sandbox refuses (400), StartError for any other failure.
   */
  call<Body>(method: 'GET' | 'POST', path: string, options?: CallOptions): Promise<Body>;
  close(): void;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** How long the answer may take, ms. */
  readonly timeoutMs?: number;
}

const DEFAULT_URL = 'https://127.0.0.1:4010';
const DEFAULT_TIMEOUT_MS = 30_000;
const howToFind = 'start one with `custos sandbox`, or name yours with --url or --ready-file';

/** Makes a client. Files are read again at each call: a sandbox that was restarted may have moved. */
export function openSandboxClient(address: SandboxAddress): SandboxClient {
  let connected: { url: string; ca: string | undefined; agent: HttpAgent } | undefined;
  const locate = () => {
    const { url, caFile } = whereabouts(address);
    const ca = url.startsWith('https:') ? authorities(address, caFile) : undefined;
    if (connected?.url === url && connected.ca === ca) return connected;
    connected?.agent.destroy();
    const agent =
      ca === undefined ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ ca, keepAlive: true });
    connected = { url, ca, agent };
    return connected;
  };
  return {
    url: () => connected?.url ?? address.url ?? DEFAULT_URL,
    async call<Body>(method: 'GET' | 'POST', path: string, options: CallOptions = {}) {
      const { url, agent } = locate();
      const { status, text } = await exchange(new URL(`/_sandbox${path}`, url), {
        ...options,
        method,
        agent,
      });
      return readAnswer(url, status, text) as Body;
    },
    close: () => connected?.agent.destroy(),
  };
}

function whereabouts({ url, readyFile, caFile }: SandboxAddress): { url: string; caFile?: string } {
  const given = caFile === undefined ? {} : { caFile };
  if (readyFile === undefined) return { url: url ?? DEFAULT_URL, ...given };
  let ready: { base_url: string; ca_file: string };
  try {
    ready = JSON.parse(readFileSync(readyFile, 'utf8'));
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isAbsent) throw new StartError(`\`${readyFile}\` is not a ready file`, { cause });
    throw new SandboxAwayError(`no sandbox is ready: \`${readyFile}\` is not there`, { cause });
  }
  if (!URL.canParse(ready?.base_url)) throw new StartError(`\`${readyFile}\` is not a ready file`);
  return { url: url ?? ready.base_url, caFile: ready.ca_file, ...given };
}

/** PEM of the authorities to trust: those of the file, else those kept where a sandbox keeps them. */
function authorities({ data }: SandboxAddress, caFile: string | undefined): string {
  if (caFile !== undefined) {
    try {
      return readFileSync(caFile, 'utf8');
    } catch {
      throw new ConfigError('this option cannot be used:', [`--ca-file \`${caFile}\` cannot be read`]);
    }
  }
  const folder = data ?? temporaryCertificateFolder();
  try {
    const files = readdirSync(folder).filter((name) => /^ca-[0-9a-f]+\.pem$/.test(name));
    return files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  } catch {
    return '';
  }
}

interface ExchangeOptions extends CallOptions {
  readonly method: string;
  readonly agent: HttpAgent;
}

function exchange(url: URL, options: ExchangeOptions): Promise<{ status: number; text: string }> {
  const { method, agent, body, signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const content = body === undefined ? undefined : JSON.stringify(body);
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const limit = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve, reject) => {
    const refuse = (error: Error): void => reject(failure(error, url.origin, signal));
    const sent = request(
      url,
      {
        method,
        agent,
        headers: content === undefined ? {} : { 'content-type': 'application/json' },
        signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
      },
      (response) => {
        readText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), refuse);
      },
    );
    sent.once('error', refuse);
    sent.end(content);
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
      `the certificate of ${origin} is not trusted (${cause.message}); name the sandbox's authority with --ca-file, or its folder with --data`,
      { cause },
    );
  }
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') {
    return new StartError(`${origin} does not speak TLS; is it a sandbox?`, { cause });
  }
  return new SandboxAwayError(`no sandbox answers at ${origin}; ${howToFind}`, { cause });
}

function readAnswer(origin: string, status: number, text: string): unknown {
  let body: { error?: unknown };
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new StartError(`${origin} answers, but is no sandbox of Custos; ${howToFind}`, { cause });
  }
  if (status === 200) return body;
  const error = String(body.error);
  if (status === 400) throw new ConfigError('the sandbox refuses this:', [error]);
  // A server without the control plane asks for credentials, or knows no such path.
  if (status === 401 || (status === 404 && error === 'Not found')) {
    throw new StartError(`${origin} answers, but has no control plane for this; is it a \`custos sandbox\`?`);
  }
  throw new StartError(status === 404 ? error : `the sandbox answered ${status}: ${error}`);
}
