import { readFile } from 'node:fs/promises';
import { setTimeout as systemPause } from 'node:timers/promises';
import { KeyStoreError, type MasterKey, MasterKeyUnavailableError } from './master-keys.ts';

const TIMEOUT_MS = 5_000;

/** The address of a key management service, and its wrapping key. */
interface TransitSettings {
  /** The base URL, for example `https://vault.example.com:8200`. */
  readonly url: string;
  /** The name of the key in the transit engine. */
  readonly key: string;
  /** The path at which the transit engine is mounted. Default: `transit`. */
  readonly mount?: string | undefined;
  /** The namespace of the engine and the token, for services with namespaces. */
  readonly namespace?: string | undefined;
  readonly token: string;
  /** The file that contains the token, if there is one. It is read again when the service refuses the token. */
  readonly tokenFile?: string | undefined;
}

interface TransitResponse {
  readonly status: number;
  readonly text: string;
}

/** A client of the HTTP API of a key management service. */
interface TransitClient {
  /** The id of the master key that is in the service. */
  readonly keyId: string;
  /**
   * Sends a request with the token. If the service refuses the token and the file has a new one, sends the request
   * again.
   *
   * @param path below `/v1`, URL-encoded.
   * @throws MasterKeyUnavailableError when no response arrives.
   */
  send(path: string, body?: Readonly<Record<string, string>>): Promise<TransitResponse>;
  /** Sends a request to the wrapping key. Apart from the path, it works like `send`. */
  sendToKey(verb: 'encrypt' | 'decrypt', body: Readonly<Record<string, string>>): Promise<TransitResponse>;
  /** Reads the token from the file. Keeps the current token if there is no file, or if it is empty or unreadable. */
  readToken(): Promise<void>;
  readonly hasTokenFile: boolean;
}

/** Returns the id of a master key that is in a key management service. */
export function transitKeyId({ key }: Pick<TransitSettings, 'key'>): string {
  return `transit:${key}`;
}

export function transitClient({
  url,
  key,
  mount = 'transit',
  namespace,
  token: firstToken,
  tokenFile,
}: TransitSettings): TransitClient {
  const keyId = transitKeyId({ key });
  let token = firstToken;
  const readToken = async (): Promise<void> => {
    if (tokenFile === undefined) return;
    const read = await readFile(tokenFile, 'utf8').catch(() => '');
    if (read.trim() !== '') token = read.trim();
  };
  const sendOnce = (path: string, body: object | undefined): Promise<TransitResponse> =>
    sendToTransit(`${url}/v1/${path}`, { token, namespace, body }).catch((error: unknown) => {
      throw new MasterKeyUnavailableError(
        `the key management service of \`${keyId}\` cannot be reached (${reasonOf(error)})`,
      );
    });
  const send: TransitClient['send'] = async (path, body) => {
    const usedToken = token;
    const response = await sendOnce(path, body);
    if (response.status !== 401 && response.status !== 403) return response;
    await readToken();
    return token === usedToken ? response : sendOnce(path, body);
  };
  return {
    keyId,
    send,
    sendToKey: (verb, body) => send(`${pathOf(mount)}/${verb}/${encodeURIComponent(key)}`, body),
    readToken,
    hasTokenFile: tokenFile !== undefined,
  };
}

/** URL-encodes each segment of a mount path. */
function pathOf(mount: string): string {
  return mount.split('/').map(encodeURIComponent).join('/');
}

async function sendToTransit(
  url: string,
  sent: { token: string; namespace: string | undefined; body: object | undefined },
): Promise<TransitResponse> {
  const { token, namespace, body } = sent;
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'x-vault-token': token,
      ...(namespace === undefined ? {} : { 'x-vault-namespace': namespace }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
    redirect: 'error',
  });
  return { status: response.status, text: await response.text() };
}

/** Returns the error code only, because the message for an invalid header contains the token. */
function reasonOf(error: unknown): string {
  const { name, cause } = error as Error;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : name;
}

/** CHOICE: a token is renewed when half of its lease has passed, which leaves time for several attempts. */
const PART_OF_LEASE = 0.5;
const SHORTEST_PAUSE_MS = 1_000;
/** The maximum pause after a failure. For short leases, the pause is an eighth of the lease. */
const RETRY_MS = 30_000;
/** How often to check a token that never expires or that another program renews. The file may contain a new token. */
const CHECK_MS = 600_000;
const LONGEST_PAUSE_MS = 86_400_000;

/** How a token is kept valid. */
export interface TokenRenewal {
  /** Stops the renewal. */
  readonly signal: AbortSignal;
  /** Called when a problem begins, and not again until it ends or another one begins. */
  report(fields: object, msg: string): void;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

const pauseUnnoticed = (ms: number, signal: AbortSignal): Promise<unknown> =>
  systemPause(ms, undefined, { ref: false, signal });

/** Renews the token before its lease ends, if the token is renewable. Resolves when the signal stops it. */
export async function keepTokenAlive(
  client: TransitClient,
  { signal, report, pause = pauseUnnoticed }: TokenRenewal,
): Promise<void> {
  let leaseMs = 0;
  let problem: string | undefined;
  const reportOnce = (msg: string | undefined, fields: object = {}): void => {
    if (msg !== undefined && msg !== problem) report({ key: client.keyId, ...fields }, msg);
    problem = msg;
  };
  while (!signal.aborted) {
    let pauseMs = CHECK_MS;
    try {
      // Another program may have written a token with a longer lease.
      await client.readToken();
      const found = await lookUp(client);
      if (found.ttlMs === 0) reportOnce(undefined);
      else if (found.isRenewable) {
        const renewedMs = await renew(client);
        // The service grants shorter and shorter leases when a token approaches its maximum lifetime.
        const isAtItsEnd = renewedMs < leaseMs * 0.9;
        reportOnce(isAtItsEnd ? LAST_LEASE : undefined, { ends_in_s: Math.round(renewedMs / 1000) });
        leaseMs = Math.max(leaseMs, renewedMs);
        pauseMs = renewedMs * PART_OF_LEASE;
      } else {
        reportOnce(client.hasTokenFile ? undefined : NOT_RENEWABLE, {
          ends_in_s: Math.round(found.ttlMs / 1000),
        });
      }
    } catch (error) {
      reportOnce('the token of the key management service cannot be renewed', {
        reason: (error as Error).message,
      });
      pauseMs = Math.min(RETRY_MS, leaseMs === 0 ? RETRY_MS : leaseMs / 8);
    }
    const limitedMs = Math.min(Math.max(pauseMs, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
    await pause(limitedMs, signal).catch(() => undefined);
  }
}

const LAST_LEASE = 'the token of the key management service ends soon and cannot be renewed for longer';
const NOT_RENEWABLE =
  'the token of the key management service ends and is not renewable; give a file that another program renews';

async function lookUp(client: TransitClient): Promise<{ ttlMs: number; isRenewable: boolean }> {
  const { data } = parsed<{ data?: { ttl?: unknown; renewable?: unknown } }>(
    await client.send('auth/token/lookup-self'),
    'lookup-self',
  );
  return { ttlMs: secondsOf(data?.ttl, 'ttl') * 1000, isRenewable: data?.renewable === true };
}

/** Renews the token. Returns how long it is valid, in ms. */
async function renew(client: TransitClient): Promise<number> {
  const { auth } = parsed<{ auth?: { lease_duration?: unknown } }>(
    await client.send('auth/token/renew-self', {}),
    'renew-self',
  );
  return secondsOf(auth?.lease_duration, 'lease_duration') * 1000;
}

// NOTE: errors never quote the response, because it contains the token.
function parsed<Body>({ status, text }: TransitResponse, verb: string): Body {
  if (status !== 200) throw new Error(`the key management service refused ${verb} (${status})`);
  try {
    return (JSON.parse(text) as Body | null) ?? ({} as Body);
  } catch {
    throw new Error(`expected JSON from ${verb}`);
  }
}

function secondsOf(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw new Error(`expected seconds as \`${name}\``);
}

/**
 * Returns a master key that is inside a key management service. The service wraps and unwraps the data keys.
 *
 * It uses `encrypt` and `decrypt` of the transit engine of HashiCorp Vault and OpenBao with `associated_data`, so the
 * binding is the same as with a local key.
 */
export function transitMasterKey(client: TransitClient): MasterKey {
  const id = client.keyId;
  const service = `the key management service of \`${id}\``;
  const call = async (verb: 'encrypt' | 'decrypt', body: Record<string, string>): Promise<unknown> => {
    const { status, text } = await client.sendToKey(verb, body);
    // Errors omit the service's error text, because it names internal policies and paths.
    if (status !== 200) {
      const message = `${service} refused to ${verb} (${status})`;
      // 400: the ciphertext or its associated data does not belong to this key.
      throw status === 400 ? new KeyStoreError(message) : new MasterKeyUnavailableError(message);
    }
    try {
      return (JSON.parse(text) as { data?: unknown }).data;
    } catch {
      // NOTE: without `cause`, because JSON.parse quotes its input, which may contain a data key.
      throw new KeyStoreError(`expected JSON from ${service}`);
    }
  };
  return {
    id,
    async wrap(dataKey, associated) {
      const data = await call('encrypt', { plaintext: base64(dataKey), associated_data: base64(associated) });
      return Buffer.from(member(data, 'ciphertext', id), 'utf8');
    },
    async unwrap(wrapped, associated) {
      const ciphertext = Buffer.from(wrapped).toString('utf8');
      const data = await call('decrypt', { ciphertext, associated_data: base64(associated) });
      return Buffer.from(member(data, 'plaintext', id), 'base64');
    },
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function member(data: unknown, name: string, id: string): string {
  const value = (data as Record<string, unknown> | undefined)?.[name];
  if (typeof value !== 'string')
    throw new KeyStoreError(`expected \`${name}\` from the key management service of \`${id}\``);
  return value;
}
