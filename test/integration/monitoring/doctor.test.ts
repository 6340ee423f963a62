import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { adjustableClock, systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import {
  checkCheckpoint,
  checkCurve,
  examineProduction,
} from '../../../src/admin/doctor/examine-production.ts';
import { readKeysConfig, readServeConfig } from '../../../src/config/config.ts';
import { nobleBackend } from '../../../src/engine/crypto/secp256k1.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { openOperations } from '../../support/run-operations.ts';
import { startScriptedNode } from '../../support/scripted-node.ts';
import { keptWallets } from '../../support/signer/kept-wallets.ts';
import { keyOf } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

const folder = temporaryFolder();
let env: Record<string, string>;

beforeAll(async () => {
  const certificate = await makeCertificate({
    clock: systemClock,
    entropy: systemEntropy,
    hosts: ['api.acme.test'],
  });
  writeFileSync(join(folder, 'cert.pem'), certificate.cert);
  writeFileSync(join(folder, 'key.pem'), certificate.key);
  env = {
    DATABASE_URL: await freshPostgres(),
    CUSTOS_TLS_CERT: join(folder, 'cert.pem'),
    CUSTOS_TLS_KEY: join(folder, 'key.pem'),
    CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
    CUSTOS_PUBLIC_URLS: 'https://localhost',
    CUSTOS_CHECKPOINT_FILE: join(folder, 'checkpoint'),
  };
});

async function examine(more: Record<string, string> = {}, execArgv: readonly string[] = []) {
  const all = { ...env, ...more };
  const outside = {
    keyStore: readKeysConfig(all).keyStore,
    env: all,
    execArgv,
    folder,
    webhookUrl: undefined,
  };
  const findings = await examineProduction(readServeConfig({}, all), outside);
  return (name: string) =>
    findings.filter((finding) => finding.name === name).map(({ state, text }) => `${state}: ${text}`);
}

describe('custos doctor --serve', () => {
  test('custos doctor --serve finds nothing wrong with a good installation', async () => {
    const of = await examine();
    expect(of('TLS')).toEqual([expect.stringMatching(/^ok: the certificate is valid until 20/)]);
    expect(of('public URL')).toEqual([expect.stringMatching(/^ok: `https:\/\/localhost` resolves to /)]);
    expect(of('schema')).toEqual(['ok: it is that of this version']);
    expect(of('owners')).toEqual([
      'ok: no owner is missing among 0 wallet(s) whose owner the signer verifies',
    ]);
    expect(of('master key')).toEqual(['ok: it seals and opens, and opens what is stored']);
    expect(of('clock')).toEqual([expect.stringMatching(/^ok: that of the database is 0\.\d s/)]);
    expect(of('connections')).toEqual([expect.stringMatching(/^ok: 14 connections for 1 process/)]);
    expect(of('Node flags')).toEqual(['ok: none that weaken the server']);
    expect(of('disk')).toEqual([expect.stringMatching(/MB are free/)]);
    expect(of('one server')).toEqual(['ok: 4 connections lead to one server and see its locks']);
    expect(of('audit log')).toEqual([`ok: its last checkpoint is kept in \`${join(folder, 'checkpoint')}\``]);
    expect(of('secp256k1')).toEqual(['ok: libsecp256k1 signs']);
  });

  test('warns when signing has no native library', () => {
    expect(checkCurve(nobleBackend)).toMatchObject({
      state: 'warning',
      text: 'libsecp256k1 does not load here, so signing in JavaScript takes 2.4 times the CPU',
    });
  });

  test('custos doctor --serve finds settings of the database with which acknowledged payments are lost', async () => {
    const url = new URL(env.DATABASE_URL!);
    url.searchParams.set('options', '-c synchronous_commit=off -c default_transaction_read_only=on');
    const of = await examine({ DATABASE_URL: url.href, CUSTOS_DATABASE_POOL: '900' });
    expect(of('database')).toEqual(
      expect.arrayContaining([
        'fault: it is read-only',
        'fault: synchronous_commit is off: acknowledged payments can be lost in a crash',
      ]),
    );
    expect(of('connections')).toEqual([expect.stringMatching(/^fault: 904 connections/)]);
  });

  test('custos doctor --serve finds that nothing keeps what was seen of the audit log, or that it cannot be kept', async () => {
    expect(checkCheckpoint({ checkpointFile: undefined })).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('CUSTOS_CHECKPOINT_FILE is not set'),
    });
    const missing = join(folder, 'no-such-folder', 'checkpoint');
    expect((await examine({ CUSTOS_CHECKPOINT_FILE: missing }))('audit log')).toEqual([
      `fault: its last checkpoint cannot be kept in \`${missing}\` (ENOENT)`,
    ]);
  });

  test('custos doctor --serve finds a database that does not answer, without naming its password', async () => {
    const of = await examine({ DATABASE_URL: 'postgresql://custos:hush@127.0.0.1:1/custos' });
    expect(of('database')).toEqual([expect.stringMatching(/^fault: it cannot be used: ECONNREFUSED/)]);
    expect(of('database').join()).not.toContain('hush');
    expect(of('master key')).toEqual(['ok: it seals and opens; the stored keys were not tried']);
  });

  test('custos doctor --serve finds another master key than that of the stored wallets', async () => {
    const url = await freshPostgres();
    const { startProduction } = await import('../../support/monitoring/production.ts');
    await (await startProduction({ DATABASE_URL: url })).close();
    expect((await examine({ DATABASE_URL: url }))('master key')).toEqual([
      expect.stringMatching(/^fault: master key `\w+` is not configured/),
    ]);
  });

  test('custos doctor --serve finds wallets whose owner cannot use them any more', async () => {
    await using server = await openOperations('postgres');
    const wallets = keptWallets(server);
    const owner = keyOf(newOwner());
    const known = await wallets.quorumOf(owner);
    const walletId = await wallets.made('createWallet', { chain_type: 'ethereum', owner_id: known });
    // As an earlier version has left it.
    await wallets.write('wallets', ['id', walletId], { owner_id: await wallets.quorumOf(owner) });
    await wallets.done('deleteKeyQuorum', { path: { key_quorum_id: known } }, owner);
    expect((await examine({ DATABASE_URL: server.database.url! }))('owners')).toEqual([
      expect.stringMatching(
        new RegExp(`^warning: 1 of 1 wallet.* was deleted: \`${walletId}\` of the app \`${server.app.id}\`$`),
      ),
    ]);
  });

  test('custos doctor --serve finds changes that are held after a restore', async () => {
    const url = await freshPostgres();
    const { startProduction } = await import('../../support/monitoring/production.ts');
    const { markRestored, releaseChanges } = await import('../../../src/admin/restored.ts');
    await (await startProduction({ DATABASE_URL: url })).close();
    await markRestored({ kind: 'postgres', url });
    expect((await examine({ DATABASE_URL: url }))('changes')).toEqual([
      expect.stringMatching(/^fault: they are held since 20.*, because the database was restored \(marked\)/),
    ]);
    await releaseChanges({ kind: 'postgres', url }, false);
    expect((await examine({ DATABASE_URL: url }))('changes')).toEqual([]);
  });

  test('custos doctor --serve finds nodes of another chain, that lag behind, and that do not answer', async () => {
    const node = (chain: string, seconds: number) =>
      startScriptedNode((method) =>
        method === 'eth_chainId'
          ? { result: chain }
          : { result: { number: '0x1', timestamp: `0x${seconds.toString(16)}` } },
      );
    const nowSeconds = Math.floor(Date.now() / 1000);
    await using good = await node('0x1', nowSeconds);
    await using lagging = await node('0x1', nowSeconds - 3_600);
    await using foreign = await node('0xa', nowSeconds);
    const urls = [good.url, lagging.url, foreign.url, 'http://127.0.0.1:1/key'].join(',');
    const of = await examine({ CUSTOS_RPC: `eip155:1=${urls}` });
    expect(of('nodes')).toEqual([
      expect.stringMatching(/^ok: eip155:1, 127\.0\.0\.1:\d+: the latest block is \d s old$/),
      expect.stringMatching(/^warning: .* is 36\d\d s old$/),
      expect.stringMatching(/^fault: .*expected a node of `eip155:1`, got one of `eip155:10`/),
      expect.stringMatching(/^fault: .*no connection/),
    ]);
    expect(of('nodes').join()).not.toContain('secret-key');
  });

  test('custos doctor --serve finds an expired certificate, one for another host, and HTTP', async () => {
    const past = adjustableClock({ startMs: Date.UTC(2020, 0, 1), frozen: true });
    const old = await makeCertificate({ clock: past, entropy: systemEntropy });
    writeFileSync(join(folder, 'old.pem'), old.cert);
    writeFileSync(join(folder, 'old-key.pem'), old.key);
    const of = await examine({
      CUSTOS_TLS_CERT: join(folder, 'old.pem'),
      CUSTOS_TLS_KEY: join(folder, 'old-key.pem'),
      CUSTOS_PUBLIC_URLS: 'http://api.acme.test',
    });
    expect(of('TLS')).toEqual([
      expect.stringMatching(/^fault: the certificate expired on 202/),
      'warning: the certificate is not for `api.acme.test`',
    ]);
    expect(of('public URL')).toEqual(['fault: `http://api.acme.test` is not HTTPS']);
  });

  test('custos doctor --serve finds flags that expose keys, and a key file that others can read', async () => {
    const file = join(folder, 'master-key');
    writeFileSync(file, env.CUSTOS_MASTER_KEY!);
    chmodSync(file, 0o644);
    const { CUSTOS_MASTER_KEY: _, ...rest } = env;
    const all = { ...rest, CUSTOS_MASTER_KEY_FILE: file, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    const outside = {
      keyStore: readKeysConfig(all).keyStore,
      env: all,
      execArgv: ['--inspect=0.0.0.0'],
      folder,
      webhookUrl: undefined,
    };
    const findings = await examineProduction(readServeConfig({}, all), outside);
    const flags = findings.filter(({ name, state }) => name === 'Node flags' && state === 'fault');
    expect(flags.map(({ text }) => text)).toEqual([
      '--inspect opens a debugger that can read keys',
      'NODE_TLS_REJECT_UNAUTHORIZED=0 accepts every certificate',
    ]);
    expect(findings.find(({ name }) => name === 'key file')).toMatchObject({
      state: 'warning',
      advice: `chmod 600 ${file}`,
    });
  });

  test('the exit code is 1 for a fault and 2 for invalid settings', async () => {
    const { code, stdout } = await runCommand(['doctor', '--serve', '--json'], { env });
    const findings = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; state: string; text: string });
    const names = findings.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['Node.js', 'TLS', 'database', 'schema', 'disk']));
    // The database of the tests does without what protects it from a loss of power.
    const faults = findings.filter(({ state }) => state === 'fault').map(({ text }) => text.split(' ')[0]);
    expect(faults).toEqual(['fsync', 'full_page_writes', 'synchronous_commit']);
    expect(code).toBe(1);
    const url = 'postgresql://custos:hush@127.0.0.1:1/custos';
    expect((await runCommand(['doctor', '--serve'], { env: { ...env, DATABASE_URL: url } })).code).toBe(1);
    expect((await runCommand(['doctor', '--serve'], { env: {} })).code).toBe(2);
  });
});
