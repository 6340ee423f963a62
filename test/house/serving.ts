import { randomBytes } from 'node:crypto';
import { Agent } from 'undici';
import { silentLog } from '../../src/adapters/log.ts';
import { administerApps } from '../../src/admin/administration.ts';
import { openSigner } from '../../src/compose/open-signer.ts';
import { startProduction } from '../../src/compose/serve.ts';
import { readServeConfig } from '../../src/config/config.ts';
import { entities } from '../../src/domain/tables.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { startEmbeddedPostgres } from '../support/postgres/embedded-postgres.ts';
import { newOwner, payloadOf, signPayload } from '../support/signer/owner.ts';

/** Requests to `custos serve`. */
interface Serving {
  createWallet(): Promise<Wallet>;
  /** `personal_sign` of a wallet, signed by its owner. */
  sign(): Promise<void>;
  close(): Promise<void>;
}

/** `custos serve` in this process, on PostgreSQL, with its signer in a process of its own. */
export async function startServing(): Promise<Serving> {
  const postgres = await startEmbeddedPostgres();
  const url = postgres.urlOf('postgres');
  const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 2 });
  await migrate(database.orm);
  await database.close();
  const app = await administerApps({ kind: 'postgres', url }).createApp('House');
  const config = readServeConfig(
    {},
    {
      DATABASE_URL: url,
      CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
      CUSTOS_TRUST_PROXY: '127.0.0.1',
      CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
      CUSTOS_HOST: '127.0.0.1',
      CUSTOS_PORT: '0',
      CUSTOS_ADMIN_PORT: 'off',
      CUSTOS_DRAIN_SECONDS: '0',
      CUSTOS_LOG_LEVEL: 'error',
    },
  );
  const server = await startProduction(config, { signer: openSigner(config), log: silentLog });
  const agent = new Agent();

  async function call<Body>(path: string, body: object, headers: object = {}): Promise<Body> {
    const answer = await agent.request({
      ...{ origin: server.baseUrl, path, method: 'POST', body: JSON.stringify(body) },
      headers: {
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
        'service-app-id': app.id,
        'content-type': 'application/json',
        // As from a proxy that terminates TLS.
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '192.0.2.7',
        ...headers,
      },
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode} ${text}`);
    return JSON.parse(text) as Body;
  }
  const createWallet = (more: object = {}) =>
    call<Wallet>('/v1/wallets', { chain_type: 'ethereum', ...more });

  const owner = newOwner();
  const { id } = await createWallet({ owner: { public_key: owner.publicKey } });
  let signed = 0;
  return {
    createWallet: () => createWallet(),
    async sign() {
      const path = `/v1/wallets/${id}/rpc`;
      signed += 1;
      const body = { method: 'personal_sign', params: { message: `hello ${signed}`, encoding: 'utf-8' } };
      const expiryMs = Date.now() + 60_000;
      await call(path, body, {
        'service-request-expiry': String(expiryMs),
        'service-authorization-signature': signPayload(
          owner,
          payloadOf({ path, body, appId: app.id, expiryMs }),
        ),
      });
    },
    async close() {
      await agent.destroy();
      await server.close();
      await postgres.stop();
    },
  };
}
