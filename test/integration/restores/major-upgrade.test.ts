import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { RestoreReport } from '../../../src/admin/restored.ts';
import { isLong } from '../../figures/figure.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import {
  askNode,
  asPostgres,
  hasDebianPostgres,
  makeNode,
  newFolder,
  startNode,
  stopNode,
} from '../../support/postgres/debian-postgres.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { serveWithSigner } from '../../support/signer/serve-with-signer.ts';

/*
 * "Major upgrades of PostgreSQL" of docs/backups.md by hand: `TEST_LONG=1 npx vitest run
 * test/integration/restores/major-upgrade.test.ts`, as root, with Debian's PostgreSQL, whose `pg_dump` and `psql` move the
 * data into the newer PostgreSQL of the tests.
 */

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

describe.runIf(isLong && hasDebianPostgres)('a major upgrade of PostgreSQL by a dump', () => {
  test('a major upgrade of PostgreSQL by a dump holds changes until they are released, and loses nothing', async () => {
    const node = await makeNode();
    startNode(node);
    await askNode(node, 'create database custos');
    const oldUrl = `postgresql://postgres@127.0.0.1:${node.port}/custos`;
    const newUrl = await freshPostgres();
    expect(await runCommand(['migrate'], { env: { DATABASE_URL: oldUrl } })).toMatchObject({ code: 0 });

    const before = await serveWithSigner({ settings: { DATABASE_URL: oldUrl } });
    const made = await before.call('/v1/wallets', { chain_type: 'ethereum' });
    const wallet = made.body as { id: string; address: string };
    const path = `/v1/wallets/${wallet.id}/rpc`;
    const signature = await before.call(path, hello);
    expect(signature.status).toBe(200);
    // 1. Wait until all records have their place in the log, and stop all servers.
    const pending = async () => (await askNode(node, 'select from audit_pending', 'custos')).length;
    await expect.poll(pending, { timeout: 30_000 }).toBe(0);
    expect((await before.stop()).code).toBe(0);
    // 2. Export the log.
    const folder = join(temporaryFolder(), 'log');
    const exported = async (url: string): Promise<{ size: number; from: number }> => {
      const { code, stdout, stderr } = await runCommand(['audit', 'export', folder, '--json'], {
        env: { ...before.env, DATABASE_URL: url },
      });
      expect(code, stderr).toBe(0);
      return JSON.parse(stdout) as { size: number; from: number };
    };
    const { size } = await exported(oldUrl);
    expect(size).toBeGreaterThan(1);
    // 3. Dump it, and load it into the new cluster.
    const dumpFolder = newFolder();
    const dump = join(dumpFolder, 'custos.sql');
    const movedMs = performance.now();
    asPostgres('pg_dump', '-d', oldUrl, '--no-owner', '-f', dump);
    await emptied(newUrl);
    asPostgres('psql', newUrl, '-q', '-1', '-v', 'ON_ERROR_STOP=1', '-f', dump);
    const dumpMs = Math.round(performance.now() - movedMs);
    stopNode(node);
    for (const each of [node.folder, dumpFolder]) rmSync(each, { recursive: true, force: true });
    // 4. A server on it answers reads, and holds changes.
    const after = await before.startBeside({ DATABASE_URL: newUrl });
    const env = { ...before.env, DATABASE_URL: newUrl };
    try {
      expect(await after.call(`/v1/wallets/${wallet.id}`)).toMatchObject({ status: 200 });
      expect(await after.call(path, hello)).toMatchObject({ status: 503, retryAfter: expect.any(String) });
      // 5. The log continues the one before.
      expect((await exported(newUrl)).from).toBeLessThanOrEqual(size);
      // 6. No account is ahead.
      const report = await runCommand(['restored', 'report', '--json'], { env });
      expect(JSON.parse(report.stdout) as RestoreReport).toMatchObject({
        restore: { cause: 'copied', released_at: null },
        accounts: { ahead: [] },
      });
      // 7. Release, and accept.
      expect(await runCommand(['restored', 'release'], { env })).toMatchObject({ code: 0 });
      expect(await runCommand(['restored', 'accept', '--all'], { env })).toMatchObject({ code: 0 });
      const sign = async () => (await after.call(path, hello)).status;
      await expect.poll(sign, { timeout: 30_000 }).toBe(200);
      expect((await after.call(path, hello)).body).toEqual(signature.body);
      // 8. The others hold nothing.
      const other = await before.startBeside({ DATABASE_URL: newUrl });
      expect((await other.call('/v1/wallets', { chain_type: 'ethereum' })).status).toBe(200);
      await other.end();
      expect((await exported(newUrl)).size).toBeGreaterThan(size);
      process.stdout.write(`${JSON.stringify({ dumpMs })}\n`);
    } finally {
      await after.end();
    }
  }, 180_000);
});

/** As a new cluster is. */
async function emptied(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('drop schema public cascade; create schema public').finally(() => client.end());
}
