import type { TransitClient } from './transit-client.ts';
import { MasterKeyUnavailableError, VaultError } from './vault-error.ts';
import type { MasterKey } from './vault-master-key.ts';

/**
 * A master key inside a key management service, which wraps and unwraps the data keys.
 * Uses the HTTP API of the transit engine in HashiCorp Vault and OpenBao: `encrypt` and `decrypt` with
 * `associated_data`, so that the binding is the same as with a local key.
 */
export function transitMasterKey(client: TransitClient): MasterKey {
  const id = client.keyId;
  const service = `the key management service of \`${id}\``;
  const call = async (verb: 'encrypt' | 'decrypt', body: Record<string, string>): Promise<unknown> => {
    const { status, text } = await client.sendToKey(verb, body);
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

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function member(data: unknown, name: string, id: string): string {
  const value = (data as Record<string, unknown> | undefined)?.[name];
  if (typeof value !== 'string')
    throw new VaultError(`expected \`${name}\` from the key management service of \`${id}\``);
  return value;
}
