import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { describe, expect, test } from 'vitest';
import type { RestoreReport } from '../../../src/admin/restored.ts';
import { startAnvil } from '../../support/anvil.ts';
import {
  askNode,
  copyNode,
  hasDebianPostgres,
  makeNode,
  newFolder,
  type PostgresNode,
  startNode,
  stopNode,
} from '../../support/postgres/debian-postgres.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

/*
 * The procedure of docs/backups.md by hand: `TEST_LONG=1 npx vitest run test/integration/restores/point-in-time.test.ts`,
 * as root, with Debian's PostgreSQL. A base backup, the archive of the WAL, payments before and after a named point, a
 * recovery to that point, and a server that starts on it.
 */

// Each request has a connection of its own: on a busy machine, servers close idle ones just before they are used.
const dispatcher = new Agent({ pipelining: 0 });
const isRun = process.env.TEST_LONG === '1' && hasDebianPostgres;
const shop = '0x52908400098527886E0F7030069857D2E4169EE7';

/** Starts `custos serve`, and calls it as the app. */
async function serve(env: Record<string, string>, app: { id: string; secret: string }) {
  const custos = await startCustos(['serve'], { env });
  const url = () => /"url":"([^"]+)"/.exec(custos.output().stdout)?.[1];
  await waitFor(() => url() !== undefined || custos.process.exitCode !== null, 60_000);
  const call = async <Body>(method: string, path: string, body?: object, key?: string) => {
    const response = await request(`${url()}${path}`, {
      ...{ method: method as 'GET', dispatcher },
      headers: {
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
        'service-app-id': app.id,
        'x-forwarded-proto': 'https',
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'service-idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.statusCode, body: (await response.body.json()) as Body };
  };
  return { call, stop: () => custos.stop() };
}

function settings({ port }: PostgresNode, masterKey: string, nodeUrl: string): Record<string, string> {
  return {
    DATABASE_URL: `postgresql://postgres@127.0.0.1:${port}/custos`,
    CUSTOS_TRUST_PROXY: '127.0.0.1',
    CUSTOS_MASTER_KEY: masterKey,
    CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
    CUSTOS_HOST: '127.0.0.1',
    CUSTOS_PORT: '0',
    CUSTOS_ADMIN_PORT: '0',
    CUSTOS_DRAIN_SECONDS: '0',
    CUSTOS_RPC: `eip155:8453=${nodeUrl}`,
    CUSTOS_CONFIRMATIONS: 'eip155:8453=off',
  };
}

describe.runIf(isRun)('recovery to a point in time', () => {
  test('what was paid after the point is reported and not paid again', async () => {
    await using anvil = await startAnvil(8453);
    await anvil.ask('evm_setAutomine', true);
    const masterKey = randomBytes(32).toString('hex');
    const primary = await makeNode();
    const archive = newFolder();
    startNode(primary, 'wal_level=replica', 'archive_mode=on', `archive_command="cp %p ${archive}/%f"`);
    await askNode(primary, 'create database custos');
    const env = settings(primary, masterKey, anvil.url);
    expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
    const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
    const app = JSON.parse(created.stdout) as { id: string; secret: string };

    const server = await serve(env, app);
    const { body: wallet } = await server.call<{ id: string; address: string }>('POST', '/v1/wallets', {
      chain_type: 'ethereum',
    });
    await anvil.ask('anvil_setBalance', wallet.address, '0xde0b6b3a7640000');
    const payment = {
      method: 'eth_sendTransaction',
      caip2: 'eip155:8453',
      params: { transaction: { to: shop, value: '0x3e8' } },
    };
    const path = `/v1/wallets/${wallet.id}/rpc`;
    const backupStartedMs = performance.now();
    const restored = await copyNode(primary);
    const backupMs = Math.round(performance.now() - backupStartedMs);
    expect(await server.call('POST', path, payment, 'first')).toMatchObject({ status: 200 });
    await askNode(primary, "select pg_create_restore_point('before_the_mistake')");
    expect(await server.call('POST', path, payment, 'second')).toMatchObject({ status: 200 });
    expect((await server.stop()).code).toBe(0);
    await askNode(primary, 'select pg_switch_wal()');
    await expect
      .poll(
        async () =>
          Number((await askNode(primary, 'select archived_count from pg_stat_archiver'))[0]?.archived_count),
        {
          timeout: 30_000,
        },
      )
      .toBeGreaterThan(1);
    stopNode(primary);

    const recoveryStartedMs = performance.now();
    await recoverTo(restored, 'before_the_mistake', archive);
    const recoveryMs = Math.round(performance.now() - recoveryStartedMs);

    const after = { ...settings(restored, masterKey, anvil.url) };
    const again = await serve(after, app);
    expect(await again.call('GET', `/v1/wallets/${wallet.id}`)).toMatchObject({ status: 200 });
    expect(await again.call('POST', path, payment, 'second')).toMatchObject({ status: 503 });
    const reported = await runCommand(['restored', 'report', '--json'], { env: after });
    const report = JSON.parse(reported.stdout) as RestoreReport;
    expect(report).toMatchObject({
      restore: { cause: 'recovered', released_at: null },
      accounts: {
        ahead: [{ account: `eip155:8453:${wallet.address}`, known_nonce: 1, chain_nonce: 2 }],
      },
    });
    expect(await runCommand(['restored', 'release'], { env: after })).toMatchObject({ code: 0 });
    const create = () => again.call('POST', '/v1/wallets', { chain_type: 'ethereum' });
    await expect.poll(async () => (await create()).status, { timeout: 30_000 }).toBe(200);
    expect(await again.call('POST', path, payment, 'second')).toMatchObject({
      status: 400,
      body: { code: 'transaction_broadcast_failure' },
    });
    expect(await anvil.ask('eth_getBalance', shop, 'latest')).toBe('0x7d0');
    process.stdout.write(`${JSON.stringify({ backupMs, recoveryMs })}\n`);
    await again.stop();
    stopNode(restored);
    for (const { folder } of [primary, restored]) rmSync(folder, { recursive: true, force: true });
    rmSync(archive, { recursive: true, force: true });
  }, 180_000);
});

/** The folder of a base backup becomes a server that has replayed the archive up to the point. */
async function recoverTo(node: PostgresNode, point: string, archive: string): Promise<void> {
  writeFileSync(join(node.folder, 'recovery.signal'), '');
  startNode(
    node,
    `restore_command="cp ${archive}/%f %p"`,
    `recovery_target_name=${point}`,
    'recovery_target_action=promote',
  );
  const isRecovering = async () => (await askNode(node, 'select pg_is_in_recovery() as now'))[0]?.now;
  await expect.poll(isRecovering, { timeout: 60_000 }).toBe(false);
}
