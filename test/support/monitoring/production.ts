import { randomBytes } from 'node:crypto';
import { silentLog } from '../../../src/adapters/log.ts';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import type { Listening } from '../../../src/compose/listen.ts';
import { startProduction as composeProduction } from '../../../src/compose/serve.ts';
import { readServeConfig, readSignerConfig } from '../../../src/config/config.ts';
import { productionKeyStore } from '../../../src/keys/production-keys.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { freshPostgres } from '../postgres/borrow-database.ts';

export type TestProduction = Listening &
  AsyncDisposable & {
    readonly adminUrl: string;
    /** Headers that make requests look like those of a proxy that terminates TLS. */
    readonly proxied: Readonly<Record<string, string>>;
    /** Returns `/metrics` without comments. */
    metrics(): Promise<string[]>;
  };

/**
 * Starts `custos serve` in this process, including its signer, on a separate database.
 *
 * @param env settings in addition to the required ones.
 */
export async function startProduction(
  env: Readonly<Record<string, string>> = {},
  log: Log = silentLog,
): Promise<TestProduction> {
  const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };
  const config = readServeConfig(
    {},
    {
      ...(env.CUSTOS_CELLS_FILE === undefined && {
        DATABASE_URL: env.DATABASE_URL ?? (await freshPostgres()),
      }),
      ...keys,
      CUSTOS_TRUST_PROXY: '127.0.0.1',
      CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
      CUSTOS_HOST: '127.0.0.1',
      CUSTOS_PORT: '0',
      CUSTOS_ADMIN_PORT: '0',
      CUSTOS_DRAIN_SECONDS: '0',
      ...env,
    },
  );
  const keyStore = productionKeyStore(readSignerConfig({ ...keys, ...env }), systemEntropy);
  const signer = {
    keyStore,
    checkKeysBy: () => undefined,
    check: async () => undefined,
    close: async () => undefined,
  };
  const server = await composeProduction(config, { log, signer: Promise.resolve(signer) });
  const adminUrl = server.adminUrl!;
  return {
    ...server,
    adminUrl,
    proxied: { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7', 'service-app-id': 'none' },
    async metrics() {
      const text = await (await fetch(`${adminUrl}/metrics`)).text();
      return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}
