import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { Agent } from 'undici';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sealTo } from '../contract/wallets/keys/hpke-client.ts';
import { serveSettings } from '../support/postgres/serve-settings.ts';
import { runCommand, type StartedCustos, startCustos, waitFor } from '../support/run-custos.ts';
import { startTransitService } from '../support/transit-service.ts';

const [oldKey, newKey] = [randomBytes(32).toString('hex'), randomBytes(32).toString('base64')];
const walletCount = 220;
/** Every wallet, one open import, and the key that signs the app's tokens. */
const sealedCount = walletCount + 4;

let common: Record<string, string>;
let agent: Agent;
let database: Client;
beforeAll(async () => {
  const { env, ca } = await serveSettings();
  const { CUSTOS_MASTER_KEY: _, ...others } = env;
  common = { ...others, CUSTOS_ADMIN_PORT: 'off', CUSTOS_RATE_LIMIT: '0', CUSTOS_MAX_DELAY_MS: '0' };
  agent = new Agent({ connect: { ca } });
  database = new Client({ connectionString: common.DATABASE_URL });
  await database.connect();
});
afterAll(async () => {
  await agent.destroy();
  await database.end();
});

interface Serving extends StartedCustos, AsyncDisposable {
  call<Body>(method: 'GET' | 'POST', path: string, body?: object): Promise<Body>;
}

let app: { id: string; secret: string };

/** Starts the production server under these master keys. */
async function serve(keys: Record<string, string>): Promise<Serving> {
  const custos = await startCustos(['serve'], { env: { ...common, ...keys } });
  const ready = () => /"url":"([^"]+)".*"ready"/.exec(custos.output().stdout)?.[1];
  await waitFor(() => ready() !== undefined || custos.process.exitCode !== null);
  const origin = ready();
  if (origin === undefined) throw new Error(`serve ended: ${(await custos.ended()).stderr}`);
  return {
    ...custos,
    async call(method, path, body) {
      const answer = await agent.request({
        ...{ origin, method, path, body: body === undefined ? null : JSON.stringify(body) },
        headers: {
          authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
          'service-app-id': app.id,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode} ${text}`);
      return JSON.parse(text);
    },
    [Symbol.asyncDispose]: async () => void (await custos.stop()),
  };
}

async function signatureOf(custos: Serving, walletId: string): Promise<string> {
  const body = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  const answer = await custos.call<{ data: { signature: string } }>(
    'POST',
    `/v1/wallets/${walletId}/rpc`,
    body,
  );
  return answer.data.signature;
}

/** The number of sealed keys by master key. */
async function sealedUnder(): Promise<Record<string, number>> {
  const tables = ['wallet_keys', 'wallet_imports', 'app_signing_keys', 'audit_keys'];
  const all = tables.map((table) => `select master_key_id from ${table}`).join(' union all ');
  const { rows } = await database.query(
    `select master_key_id, count(*)::int from (${all}) t group by 1 order by 2 desc`,
  );
  return Object.fromEntries(rows.map(({ master_key_id, count }) => [master_key_id, count]));
}

describe('keys rotate', () => {
  const wallets: { id: string; signature: string }[] = [];
  const imported = randomBytes(32);
  const importedAddress = privateKeyToAccount(`0x${imported.toString('hex')}`).address;
  let submission: object;
  let jwks: unknown;

  test('wallets, an open import and a token key are sealed under the first key', async () => {
    const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env: common });
    app = JSON.parse(created.stdout);
    await using custos = await serve({ CUSTOS_MASTER_KEY: oldKey });
    for (const size of [100, 100, 20]) {
      const body = { wallets: Array.from({ length: size }, () => ({ chain_type: 'ethereum' })) };
      const { results } = await custos.call<{ results: { wallet: { id: string } }[] }>(
        'POST',
        '/v1/wallets/batch',
        body,
      );
      const signed = results.map(async ({ wallet: { id } }) => {
        return { id, signature: await signatureOf(custos, id) };
      });
      wallets.push(...(await Promise.all(signed)));
    }
    const declared = {
      address: importedAddress,
      chain_type: 'ethereum',
      encryption_type: 'HPKE',
      entropy_type: 'private-key',
    };
    const begun = await custos.call<{ encryption_public_key: string }>(
      'POST',
      '/v1/wallets/import/init',
      declared,
    );
    submission = { wallet: { ...declared, ...(await sealTo(begun.encryption_public_key, imported)) } };
    jwks = await custos.call('GET', `/v1/apps/${app.id}/jwks.json`);
    expect(Object.values(await sealedUnder())).toEqual([sealedCount]);
  });

  test('keys rotate: is interrupted and restarted, and signing works meanwhile', async () => {
    const keys = { CUSTOS_MASTER_KEY: newKey, CUSTOS_PREVIOUS_MASTER_KEYS: oldKey };
    const env = { DATABASE_URL: common.DATABASE_URL!, ...keys };
    await using custos = await serve(keys);
    let isOver = false;
    let signed = 0;
    const signing = Promise.all(
      [0, 1, 2].map(async (offset) => {
        for (let turn = offset; !isOver; turn += 3) {
          const wallet = wallets[turn % walletCount]!;
          expect(await signatureOf(custos, wallet.id)).toBe(wallet.signature);
          signed += 1;
        }
      }),
    );

    // The last row is locked, so the second batch commits and the third one blocks.
    await database.query('begin');
    await database.query('select 1 from wallet_keys order by wallet_id desc limit 1 for update');
    const rotation = await startCustos(['keys', 'rotate'], { env });
    await waitFor(
      () => rotation.output().stderr.includes('200 re-wrapped') || rotation.process.exitCode !== null,
    );
    expect(await rotation.stop('SIGKILL')).toMatchObject({
      code: null,
      stdout: '',
      stderr: '100 re-wrapped\n200 re-wrapped\n',
    });
    expect(Object.values(await sealedUnder())).toEqual([200, sealedCount - 200]);
    await database.query('rollback');

    const resumed = await runCommand(['keys', 'rotate'], { env });
    expect(resumed).toMatchObject({ code: 0, stdout: `${sealedCount - 200} keys re-wrapped\n` });
    expect(Object.values(await sealedUnder())).toEqual([sealedCount]);
    // A wallet created meanwhile is also sealed under the new key.
    await custos.call('POST', '/v1/wallets', { chain_type: 'solana' });
    expect(Object.values(await sealedUnder())).toEqual([sealedCount + 1]);
    const again = await runCommand(['keys', 'rotate', '--quiet'], { env });
    expect(again).toEqual({ code: 0, stdout: 'every key is under the current master key\n', stderr: '' });
    isOver = true;
    await signing;
    expect(signed).toBeGreaterThan(walletCount / 10);
  });

  test('afterwards the previous key is not needed, and the previous key alone is refused at start', async () => {
    {
      await using custos = await serve({ CUSTOS_MASTER_KEY: newKey });
      const signatures = wallets.map(({ id }) => signatureOf(custos, id));
      expect(await Promise.all(signatures)).toEqual(wallets.map(({ signature }) => signature));
      expect(await custos.call('GET', `/v1/apps/${app.id}/jwks.json`)).toEqual(jwks);
      const wallet = await custos.call<{ id: string; address: string }>(
        'POST',
        '/v1/wallets/import/submit',
        submission,
      );
      expect(wallet.address).toBe(importedAddress);
      wallets.push({ id: wallet.id, signature: await signatureOf(custos, wallet.id) });
    }
    const { code, stderr } = await runCommand(['serve'], { env: { ...common, CUSTOS_MASTER_KEY: oldKey } });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^custos: the wallets in this database are sealed under another master key \(master key `[0-9a-f]{16}` is not configured\); start with the master key that they were made with\n$/,
    );
    const rotation = await runCommand(['keys', 'rotate'], {
      env: { DATABASE_URL: common.DATABASE_URL!, CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') },
    });
    expect(rotation).toMatchObject({ code: 1, stdout: '' });
    expect(rotation.stderr).toContain('add the key they were sealed under to CUSTOS_PREVIOUS_MASTER_KEYS');
    for (const secret of [oldKey, newKey]) expect(stderr + rotation.stderr).not.toContain(secret);
  });

  test('the keys move to a key management service, which is then sufficient', async () => {
    await using service = await startTransitService();
    const kms = { CUSTOS_KMS_URL: service.url, CUSTOS_KMS_KEY: 'custos', CUSTOS_KMS_TOKEN: service.token };
    const both = { ...kms, CUSTOS_PREVIOUS_MASTER_KEYS: newKey };
    {
      await using custos = await serve(both);
      const { id, signature } = wallets[0]!;
      expect(await signatureOf(custos, id)).toBe(signature);
      const rotation = await runCommand(['keys', 'rotate'], {
        env: { DATABASE_URL: common.DATABASE_URL!, ...both },
      });
      // The import is finished: its wallet and the one created meanwhile were added.
      expect(rotation).toMatchObject({ code: 0, stdout: `${sealedCount + 1} keys re-wrapped\n` });
      expect(await sealedUnder()).toEqual({ 'transit:custos': sealedCount + 1 });
      expect(await signatureOf(custos, id)).toBe(signature);
    }
    {
      await using custos = await serve(kms);
      for (const { id, signature } of wallets.slice(-20))
        expect(await signatureOf(custos, id)).toBe(signature);
    }
    const refused = await runCommand(['serve'], {
      env: { ...common, ...kms, CUSTOS_KMS_TOKEN: 's.not-the-token' },
    });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      'the key management service of `transit:custos` refused to decrypt (403)',
    );
    expect(refused.stderr + refused.stdout).not.toContain('s.not-the-token');
    const local = await runCommand(['serve'], { env: { ...common, CUSTOS_MASTER_KEY: newKey } });
    expect(local).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('master key `transit:custos` is not configured'),
    });
  });

  test('keys rotate: reports all missing settings at once', async () => {
    const { code, stderr } = await runCommand(['keys', 'rotate']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^custos: the keys cannot be used with these settings:\n/);
    expect(stderr).toContain('  - DATABASE_URL is missing');
    expect(stderr).toContain('  - CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE or CUSTOS_KMS_URL is missing');
  });
});
