import { readFile } from 'node:fs/promises';
import { MasterKeyUnavailableError, VaultError } from './vault-error.ts';
import type { MasterKey } from './vault-master-key.ts';

const TIMEOUT_MS = 5_000;

/** The key management service and its wrapping key. */
export interface TransitSettings {
  /** Base URL, e.g. `https://vault.example.com:8200`. */
  readonly url: string;
  /** Name of the key in the transit engine. */
  readonly key: string;
  readonly token: string;
  /** Where the token comes from, if it is a file: it is read again when the service refuses the token. */
  readonly tokenFile?: string | undefined;
}

/**
 * A master key inside a key management service, which wraps and unwraps the data keys.
 * Uses the HTTP API of the transit engine in HashiCorp Vault and OpenBao: `encrypt` and `decrypt` with
 * `associated_data`, so that the binding is the same as with a local key.
 */
export function transitMasterKey({ url, key, token: firstToken, tokenFile }: TransitSettings): MasterKey {
  const id = transitKeyId({ key });
  const service = `the key management service of \`${id}\``;
  let token = firstToken;
  const readToken = async (): Promise<void> => {
    if (tokenFile === undefined) return;
    const read = await readFile(tokenFile, 'utf8').catch(() => '');
    if (read.trim() !== '') token = read.trim();
  };
  const send = (address: string, body: Record<string, string>) =>
    post(address, token, body).catch((error: unknown) => {
      throw new MasterKeyUnavailableError(`${service} cannot be reached (${reasonOf(error)})`);
    });
  const call = async (verb: 'encrypt' | 'decrypt', body: Record<string, string>): Promise<unknown> => {
    const address = `${url}/v1/transit/${verb}/${encodeURIComponent(key)}`;
    const usedToken = token;
    let answer = await send(address, body);
    if (answer.status === 401 || answer.status === 403) {
      await readToken();
      if (token !== usedToken) answer = await send(address, body);
    }
    const { status, text } = answer;
    // The service's error text is omitted: it names internal policies and paths.
    if (status !== 200) {
      const message = `${service} refused to ${verb} (${status})`;
      // 400: this ciphertext, or this binding, is not one of the key.
      throw status === 400 ? new VaultError(message) : new MasterKeyUnavailableError(message);
    }
    try {
      return (JSON.parse(text) as { data?: unknown }).data;
    } catch {
      // NOTE: without a cause, because JSON.parse quotes its input, which may contain a data key.
      throw new VaultError(`expected JSON from ${service}`);
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

/** The id of the master key in a key management service. */
export function transitKeyId({ key }: Pick<TransitSettings, 'key'>): string {
  return `transit:${key}`;
}

async function post(
  url: string,
  token: string,
  body: Record<string, string>,
): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'x-vault-token': token, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
    redirect: 'error',
  });
  return { status: response.status, text: await response.text() };
}

/** Only the error code: the message for an invalid header contains the token. */
function reasonOf(error: unknown): string {
  const { name, cause } = error as Error;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : name;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function member(data: unknown, name: string, id: string): string {
  const value = (data as Record<string, unknown> | undefined)?.[name];
  if (typeof value !== 'string')
    throw new VaultError(`expected \`${name}\` from the key management service of \`${id}\``);
  return value;
}
