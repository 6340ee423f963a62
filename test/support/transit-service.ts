import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A key management service with the part of the transit engine's interface that is used. */
export interface TransitService extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** The requests, without the token. */
  readonly requests: { readonly path: string; readonly body: Record<string, string> }[];
  /** Replaces the responses of the service; undefined restores them. */
  interrupt(answer: ((response: ServerResponse) => void) | undefined): void;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Starts one with an AES-256-GCM key of this name. */
export async function startTransitService(keyName = 'custos'): Promise<TransitService> {
  const key = randomBytes(32);
  const token = `s.${randomBytes(12).toString('hex')}`;
  const requests: TransitService['requests'] = [];
  let instead: ((response: ServerResponse) => void) | undefined;

  const server = createServer(async (request, response) => {
    const reply = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const body = await readJson(request);
    const path = request.url ?? '';
    requests.push({ path, body });
    if (instead !== undefined) return instead(response);
    if (request.headers['x-vault-token'] !== token) return reply(403, { errors: ['permission denied'] });
    const associated = Buffer.from(body.associated_data ?? '', 'base64');
    if (decodeURIComponent(path) === `/v1/transit/encrypt/${keyName}`) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated);
      const sealed = [cipher.update(body.plaintext ?? '', 'base64'), cipher.final(), cipher.getAuthTag()];
      const ciphertext = `vault:v1:${Buffer.concat([nonce, ...sealed]).toString('base64')}`;
      return reply(200, { data: { ciphertext, key_version: 1 } });
    }
    if (decodeURIComponent(path) === `/v1/transit/decrypt/${keyName}`) {
      try {
        const sealed = Buffer.from((body.ciphertext ?? '').replace(/^vault:v1:/, ''), 'base64');
        const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), {
          authTagLength: TAG_BYTES,
        }).setAAD(associated);
        decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
        const plain = [decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
        return reply(200, { data: { plaintext: Buffer.concat(plain).toString('base64') } });
      } catch {
        return reply(400, { errors: ['cipher: message authentication failed'] });
      }
    }
    return reply(404, { errors: [] });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    requests,
    interrupt: (answer) => {
      instead = answer;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readJson(request: IncomingMessage): Promise<Record<string, string>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, string>;
}
