import { VaultError } from './vault-error.ts';
import type { MasterKey } from './vault-master-key.ts';

const TIMEOUT_MS = 5_000;

/** Where the key management service is, and which of its keys wraps. */
export interface TransitSettings {
  /** Base URL, e.g. `https://vault.example.com:8200`. */
  readonly url: string;
  /** Name of the key in the transit engine. */
  readonly key: string;
  readonly token: string;
}

/**
 * A master key that never leaves a key management service: data keys travel there to be wrapped and unwrapped.
 * Speaks the HTTP interface of the transit engine of HashiCorp Vault and OpenBao: `encrypt` and `decrypt` with
 * `associated_data`, so that the service binds them as a local key would.
 */
export function transitMasterKey({ url, key, token }: TransitSettings): MasterKey {
  const id = `transit:${key}`;
  const service = `the key management service of \`${id}\``;
  const call = async (verb: 'encrypt' | 'decrypt', body: Record<string, string>): Promise<unknown> => {
    const address = `${url}/v1/transit/${verb}/${encodeURIComponent(key)}`;
    const { status, text } = await post(address, token, body).catch((error: unknown) => {
      throw new VaultError(`${service} cannot be reached (${reasonOf(error)})`);
    });
    // Its error texts name policies and paths of its own, nothing that was sent.
    if (status !== 200) throw new VaultError(`${service} refused to ${verb} (${status})`);
    try {
      return (JSON.parse(text) as { data?: unknown }).data;
    } catch {
      // NOTE: no cause: a parser quotes the text it stumbled over, and here that may be a data key.
      throw new VaultError(`${service} answered no JSON`);
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

/** The code of what went wrong, and nothing else of it: the text of a refused header holds the token. */
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
    throw new VaultError(`the key management service of \`${id}\` answered no ${name}`);
  return value;
}
