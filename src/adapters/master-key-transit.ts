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
  const call = async (verb: 'encrypt' | 'decrypt', body: Record<string, string>): Promise<unknown> => {
    const response = await fetch(`${url}/v1/transit/${verb}/${encodeURIComponent(key)}`, {
      method: 'POST',
      headers: { 'x-vault-token': token, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'error',
    }).catch((cause: unknown) => {
      throw new VaultError(`the key management service of \`${id}\` cannot be reached`, cause);
    });
    if (!response.ok) {
      // Its error texts name policies and paths of its own, nothing that was sent.
      throw new VaultError(
        `the key management service refused to ${verb} under \`${id}\` (${response.status})`,
      );
    }
    return ((await response.json()) as { data?: unknown }).data;
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
    throw new VaultError(`the key management service of \`${id}\` answered no ${name}`);
  return value;
}
