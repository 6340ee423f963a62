import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { Client } from 'pg';
import { Agent } from 'undici';
import { describe, expect, test } from 'vitest';
import {
  defaultTimeouts,
  postgresDialect,
  postgresPool,
  sessionModeOf,
} from '../../../src/storage/postgres-dialect.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCustos, startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';

test('with pgbouncer=true a session keeps nothing, and each transaction has its limits', async () => {
  const url = `${await freshPostgres()}?pgbouncer=true`;
  const pool = postgresPool({ connectionString: url, max: 1 }, () => undefined, defaultTimeouts);
  const database = new Kysely<{ pg_prepared_statements: { name: string } }>({
    dialect: postgresDialect(pool, sessionModeOf(url, defaultTimeouts)),
  });
  const limit = async (on: Kysely<never>): Promise<string> => {
    const { rows } = await sql<{
      limit: string;
    }>`select current_setting('statement_timeout') as limit for update`.execute(on);
    return rows[0]!.limit;
  };
  try {
    expect(await limit(database as never)).toBe('0');
    expect(await database.transaction().execute((em) => limit(em as never))).toBe('10s');
    expect(await limit(database as never)).toBe('0');
    const named = database.selectFrom('pg_prepared_statements').selectAll().where('name', '!=', '');
    await named.execute();
    expect(await named.execute()).toEqual([]);
  } finally {
    await database.destroy();
  }
});

const program = '/usr/sbin/pgbouncer';
const isRun = process.env.TEST_LONG === '1' && existsSync(program);

/** A real PgBouncer in transaction mode with fewer connections to the server than clients. */
async function startPgBouncer(target: URL) {
  const port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = server.address() as { port: number };
      server.close(() => resolve(free));
    });
  });
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
* = host=${target.hostname} port=${target.port} user=${target.username} password=${target.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
`,
  );
  const child = spawn(program, ['-q', '-u', 'daemon', file], { stdio: 'ignore' });
  for (let isUp = false; !isUp; ) {
    isUp = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.unref();
    });
  }
  return {
    url: `postgresql://any@127.0.0.1:${port}${target.pathname}`,
    stop: () => void child.kill('SIGTERM'),
  };
}

describe.runIf(isRun)('through PgBouncer in transaction mode', () => {
  test('commands and two workers work, with more clients than connections to the server', async () => {
    const direct = new URL(await freshPostgres());
    const bouncer = await startPgBouncer(direct);
    try {
      const env = {
        DATABASE_URL: `${bouncer.url}?pgbouncer=true`,
        CUSTOS_TRUST_PROXY: '127.0.0.1',
        CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
        CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
        CUSTOS_HOST: '127.0.0.1',
        CUSTOS_PORT: '0',
        CUSTOS_ADMIN_PORT: '0',
        CUSTOS_DRAIN_SECONDS: '0',
        CUSTOS_RATE_LIMIT: '10000',
        CUSTOS_MAX_DELAY_MS: '0',
      };
      expect(await runCustos(['migrate'], { env })).toMatchObject({ code: 0 });
      const created = await runCustos(['apps', 'create', '--name', 'Globex', '--json'], { env });
      const app = JSON.parse(created.stdout) as { id: string; secret: string };
      // Without the setting, PgBouncer refuses the parameters of the connection.
      const refused = await runCustos(['serve'], { env: { ...env, DATABASE_URL: bouncer.url } });
      expect(refused.code).toBe(1);

      const custos = await startCustos(['serve', '--workers', '2'], { env });
      const ready = (): { url: string } | undefined =>
        custos
          .output()
          .stdout.split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
          .find(({ msg, workers }) => msg === 'ready' && workers === 2);
      await waitFor(() => ready() !== undefined || custos.process.exitCode !== null, 60_000);
      const agent = new Agent({ connections: 40 });
      const call = async (method: 'GET' | 'POST', path: string, body?: object) => {
        const { statusCode, body: answer } = await agent.request({
          ...{ origin: ready()!.url, path, method },
          headers: {
            authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
            'service-app-id': app.id,
            'x-forwarded-proto': 'https',
            'content-type': 'application/json',
          },
          body: body === undefined ? null : JSON.stringify(body),
        });
        return { status: statusCode, body: (await answer.json()) as { id: string } };
      };
      const statuses = new Map<number, number>();
      const count = ({ status }: { status: number }) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await Promise.all(
        Array.from({ length: 40 }, async () => {
          for (let round = 0; round < 10; round += 1) {
            const wallet = await call('POST', '/v1/wallets', { chain_type: 'ethereum' });
            count(wallet);
            const params = { message: 'x', encoding: 'utf-8' };
            count(
              await call('POST', `/v1/wallets/${wallet.body.id}/rpc`, { method: 'personal_sign', params }),
            );
            count(await call('GET', '/v1/wallets?limit=10'));
          }
        }),
      );
      expect([...statuses]).toEqual([[200, 1_200]]);
      const client = new Client({ connectionString: direct.href });
      await client.connect();
      const { rows } = await client.query('select count(*)::int as count from wallets');
      await client.end();
      expect(rows).toEqual([{ count: 400 }]);
      await agent.destroy();
      expect(await custos.stop()).toMatchObject({ code: 0, stderr: '' });
    } finally {
      bouncer.stop();
    }
  }, 180_000);
});
