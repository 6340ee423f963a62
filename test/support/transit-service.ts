import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A key management service with the used part of the transit engine's interface. */
export interface TransitService extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** The requests, without their token. */
  readonly requests: { readonly path: string; readonly body: Record<string, string> }[];
  /** The lease of the token. By default, it does not end. */
  readonly lease: { seconds: number; renewable: boolean; endsAtS: number; latestS: number };
  /** Replaces the responses of the service. Undefined restores them. */
  interrupt(answer: ((response: ServerResponse) => void) | undefined): void;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface TransitServiceOptions {
  readonly mount?: string;
  readonly namespace?: string;
  /** The clock by which leases end. */
  readonly nowS?: () => number;
}

/** Starts a service with an AES-256-GCM key of this name. */
export async function startTransitService(
  keyName = 'custos',
  { mount = 'transit', namespace, nowS = () => 0 }: TransitServiceOptions = {},
): Promise<TransitService> {
  const lease = { seconds: 0, renewable: false, endsAtS: Infinity, latestS: Infinity };
  const key = randomBytes(32);
  const token = `s.${randomBytes(12).toString('hex')}`;
  const requests: TransitService['requests'] = [];
  let instead: ((response: ServerResponse) => void) | undefined;

  const server = createServer(async (request, response) => {
    const reply = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const body = request.method === 'GET' ? {} : await readJson(request);
    const path = request.url ?? '';
    requests.push({ path, body });
    if (instead !== undefined) return instead(response);
    // With namespaces, the service knows a token only in the token's own namespace.
    const isKnown =
      request.headers['x-vault-token'] === token && request.headers['x-vault-namespace'] === namespace;
    if (!isKnown || nowS() >= lease.endsAtS) return reply(403, { errors: ['permission denied'] });
    if (path === '/v1/auth/token/lookup-self' && request.method === 'GET') {
      const ttl = lease.endsAtS === Infinity ? 0 : lease.endsAtS - nowS();
      return reply(200, { data: { id: token, ttl, renewable: lease.renewable } });
    }
    if (path === '/v1/auth/token/renew-self') {
      if (!lease.renewable) return reply(400, { errors: ['lease is not renewable'] });
      lease.endsAtS = Math.min(nowS() + lease.seconds, lease.latestS);
      const auth = { client_token: token, lease_duration: lease.endsAtS - nowS(), renewable: true };
      return reply(200, { auth });
    }
    const associated = Buffer.from(body.associated_data ?? '', 'base64');
    if (decodeURIComponent(path) === `/v1/${mount}/encrypt/${keyName}`) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated);
      const sealed = [cipher.update(body.plaintext ?? '', 'base64'), cipher.final(), cipher.getAuthTag()];
      const ciphertext = `vault:v1:${Buffer.concat([nonce, ...sealed]).toString('base64')}`;
      return reply(200, { data: { ciphertext, key_version: 1 } });
    }
    if (decodeURIComponent(path) === `/v1/${mount}/decrypt/${keyName}`) {
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
    lease,
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
