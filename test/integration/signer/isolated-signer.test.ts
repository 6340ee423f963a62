import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { SignJWT } from 'jose';
import { Client } from 'pg';
import { privateKeyToAccount } from 'viem/accounts';
import { recoverMessageAddress } from 'viem/utils';
import { beforeAll, expect, test } from 'vitest';
import { hpkeRecipientFromSeed, openHpke } from '../../../src/engine/crypto/hpke.ts';
import { encodeP256PublicKey } from '../../../src/engine/crypto/p256.ts';
import { sealTo } from '../../contract/wallets/keys/hpke-client.ts';
import { waitFor } from '../../support/run-custos.ts';
import { newOwner, type Owner, ownerOf, payloadOf, signPayload } from '../../support/signer/owner.ts';
import { foundInMemory } from '../../support/signer/process-memory.ts';
import { type ServedWithSigner, serveWithSigner } from '../../support/signer/serve-with-signer.ts';

const login = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let server: ServedWithSigner;
const call: ServedWithSigner['call'] = (...asked) => server.call(...asked);
const signerPid = (): number => server.signerPid();
beforeAll(async () => {
  server = await serveWithSigner({
    login: login.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
  });
  return server.end;
});

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

async function expectSigns({ id, address }: { id: string; address: string }): Promise<void> {
  const { body } = await call(`/v1/wallets/${id}/rpc`, hello);
  const { signature } = (body as { data: { signature: `0x${string}` } }).data;
  expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(address);
}

test.skipIf(process.platform !== 'linux')(
  'the memory of the server contains neither the master key nor a key that was used',
  async () => {
    const imported = randomBytes(32);
    const declared = {
      ...{ address: privateKeyToAccount(`0x${imported.toString('hex')}`).address, chain_type: 'ethereum' },
      ...{ encryption_type: 'HPKE', entropy_type: 'private-key' },
    };
    const begun = await call('/v1/wallets/import/init', declared);
    const sealed = await sealTo(
      (begun.body as { encryption_public_key: string }).encryption_public_key,
      imported,
    );
    const finished = await call('/v1/wallets/import/submit', { wallet: { ...declared, ...sealed } });
    expect(finished.status).toBe(200);
    const made = await call('/v1/wallets', { chain_type: 'ethereum' });
    const wallets = [finished.body, made.body] as { id: string; address: string }[];
    for (let count = 0; count < 20; count += 1) for (const wallet of wallets) await expectSigns(wallet);

    const { privateKeyBytes: recipientPrivateKeyBytes, publicKeyBytes } = await hpkeRecipientFromSeed(
      randomBytes(32),
    );
    const exported = await call(`/v1/wallets/${wallets[1]!.id}/export`, {
      ...{ encryption_type: 'HPKE', recipient_public_key: encodeP256PublicKey(publicKeyBytes) },
    });
    const { ciphertext, encapsulated_key } = exported.body as Record<string, string>;
    const text = await openHpke({
      recipientPrivateKeyBytes,
      ciphertext: Buffer.from(ciphertext!, 'base64'),
      encapsulatedKey: Buffer.from(encapsulated_key!, 'base64'),
    });
    const drawn = Buffer.from(Buffer.from(text).toString().replace(/^0x/, ''), 'hex');
    expect(privateKeyToAccount(`0x${drawn.toString('hex')}`).address).toBe(wallets[1]!.address);

    const wanted = Object.fromEntries(
      Object.entries({ masterKey: server.masterKey, imported, drawn }).flatMap(([name, key]) => [
        [name, key],
        [`${name} in hex`, Buffer.from(key.toString('hex'))],
        [`${name} in base64`, Buffer.from(key.toString('base64'))],
      ]),
    );
    // The search itself works: the signer has the master key.
    const inSigner = foundInMemory(signerPid(), wanted);
    if (inSigner === undefined) return;
    expect(inSigner).toContain('masterKey');
    expect([...foundInMemory(server.process.pid!, wanted)!]).toEqual([]);
    expect(readFileSync(`/proc/${signerPid()}/environ`, 'utf8')).not.toContain('DATABASE_URL');
  },
);

test('a database that names another owner does not give the wallet away', async () => {
  const [owner, thief] = [newOwner(), newOwner()];
  const made = await call('/v1/wallets', { chain_type: 'ethereum', owner: { public_key: owner.publicKey } });
  const wallet = made.body as { id: string; address: string; owner_id: string };
  const quorum = await call('/v1/key_quorums', { public_keys: [thief.publicKey] });
  const path = `/v1/wallets/${wallet.id}/rpc`;
  const sign = async (by: Owner, message: string) => {
    const body = { method: 'personal_sign', params: { message, encoding: 'utf-8' } };
    const expiryMs = Date.now() + 60_000;
    const signature = signPayload(by, payloadOf({ path, body, appId: server.app.id, expiryMs }));
    const headers = { 'service-request-expiry': String(expiryMs) };
    return call(path, body, { ...headers, 'service-authorization-signature': signature });
  };
  const { data } = (await sign(owner, 'mine')).body as { data: { signature: `0x${string}` } };
  expect(await recoverMessageAddress({ message: 'mine', signature: data.signature })).toBe(wallet.address);
  expect((await sign(thief, 'theirs')).status).toBe(401);

  const client = new Client({ connectionString: server.databaseUrl });
  await client.connect();
  const set = (change: string, value: string) =>
    client.query(`update wallets set ${change} = $1 where id = $2`, [value, wallet.id]);
  try {
    const { id } = quorum.body as { id: string };
    await set('owner_id', id);
    // The server believes its database, and the signer does not.
    expect((await sign(thief, 'theirs')).status).toBe(500);
    await set('owner_id', wallet.owner_id);
    await set('additional_signers', JSON.stringify([{ signer_id: id }]));
    expect((await sign(thief, 'theirs')).status).toBe(500);
    await set('additional_signers', '[]');
    await client.query('update key_quorum_members set member = $1 where key_quorum_id = $2', [
      ...[thief.publicKey, wallet.owner_id],
    ]);
    expect((await sign(thief, 'theirs')).status).toBe(500);
    await client.query('update key_quorum_members set member = $1 where key_quorum_id = $2', [
      ...[owner.publicKey, wallet.owner_id],
    ]);
    await client.query('update wallet_keys set authority = null where wallet_id = $1', [wallet.id]);
    expect((await sign(owner, 'mine again')).status).toBe(500);
  } finally {
    await client.end();
  }
});

test('a wallet gets its first owner, is given up and owned again, and a database names another one', async () => {
  const [owner, thief] = [newOwner(), newOwner()];
  const made = await call('/v1/wallets', { chain_type: 'ethereum' });
  const wallet = made.body as { id: string; address: string };
  const path = `/v1/wallets/${wallet.id}`;
  const signed = (by: Owner, asked: { path: string; method: 'POST' | 'PATCH'; body: object }) => {
    const expiryMs = Date.now() + 60_000;
    const payload = payloadOf({ ...asked, appId: server.app.id, expiryMs });
    const headers = {
      'service-request-expiry': String(expiryMs),
      'service-authorization-signature': signPayload(by, payload),
    };
    return call(asked.path, asked.body, headers, asked.method === 'PATCH' ? 'PATCH' : undefined);
  };
  const sign = (by: Owner) => signed(by, { path: `${path}/rpc`, method: 'POST', body: hello });
  const change = { path, method: 'PATCH', body: { owner: null } } as const;
  const named = { owner: { public_key: owner.publicKey } };
  for (const free of [async () => expectSigns(wallet), async () => void (await signed(owner, change))]) {
    await free();
    const owned = await call(path, named, {}, 'PATCH');
    expect(owned, JSON.stringify(owned.body)).toMatchObject({ status: 200 });
    expect((await call(`${path}/rpc`, hello)).status).toBe(401);
    expect((await sign(owner)).status).toBe(200);
  }
  const quorum = await call('/v1/key_quorums', { public_keys: [thief.publicKey] });
  const client = new Client({ connectionString: server.databaseUrl });
  await client.connect();
  try {
    const { id } = quorum.body as { id: string };
    await client.query('update wallets set owner_id = $1 where id = $2', [id, wallet.id]);
    // The server believes its database, and the signer does not.
    expect((await sign(thief)).status).toBe(500);
    await client.query('update wallets set owner_id = null where id = $1', [wallet.id]);
    expect((await call(`${path}/rpc`, hello)).status).toBe(500);
    const theft = { owner: { public_key: thief.publicKey } };
    expect((await call(path, theft, {}, 'PATCH')).status).toBe(500);
    await client.query('update wallet_keys set authority = null where wallet_id = $1', [wallet.id]);
    expect((await call(path, theft, {}, 'PATCH')).status).toBe(500);
  } finally {
    await client.end();
  }
});

test('a database that names another key of a user does not give the wallet away', async () => {
  const made = await call('/v1/users', { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'ann' }] });
  const user = made.body as { id: string };
  const wallet = (await call('/v1/wallets', { chain_type: 'ethereum', owner: { user_id: user.id } }))
    .body as { id: string; address: string };
  const userJwt = await new SignJWT({ sub: 'ann' })
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setExpirationTime('1h')
    .sign(login.privateKey);
  const handed = await call('/v1/wallets/authenticate', { user_jwt: userJwt });
  const ann = ownerOf((handed.body as { authorization_key: string }).authorization_key);
  const path = `/v1/wallets/${wallet.id}/rpc`;
  const sign = async (by: Owner) => {
    const expiryMs = Date.now() + 60_000;
    const payload = payloadOf({ path, body: hello, appId: server.app.id, expiryMs });
    const headers = { 'service-request-expiry': String(expiryMs) };
    return call(path, hello, { ...headers, 'service-authorization-signature': signPayload(by, payload) });
  };
  const { data } = (await sign(ann)).body as { data: { signature: `0x${string}` } };
  expect(await recoverMessageAddress({ message: 'hello', signature: data.signature })).toBe(wallet.address);

  const thief = newOwner();
  const client = new Client({ connectionString: server.databaseUrl });
  await client.connect();
  try {
    await client.query('update user_keys set public_key = $1 where user_id = $2', [thief.publicKey, user.id]);
    // The server believes its database, and the signer does not.
    expect((await sign(thief)).status).toBe(500);
  } finally {
    await client.end();
  }
});

test.skipIf(process.platform !== 'linux')(
  'a signer that is killed under load is replaced, and no acknowledged wallet is lost',
  async () => {
    const acknowledged: { id: string; address: string }[] = [];
    const statuses = new Set<number>();
    let isOver = false;
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const { status, retryAfter, body } = await call('/v1/wallets', { chain_type: 'ethereum' });
        statuses.add(status);
        if (status === 200) acknowledged.push(body);
        else expect({ status, retryAfter }).toEqual({ status: 503, retryAfter: '2' });
      }
    });
    for (let kill = 0; kill < 3; kill += 1) {
      const before = acknowledged.length;
      await waitFor(() => acknowledged.length > before + 5);
      const pid = signerPid();
      process.kill(pid, 'SIGKILL');
      const atKill = acknowledged.length;
      await waitFor(() => acknowledged.length > atKill + 10);
      expect(signerPid()).not.toBe(pid);
    }
    isOver = true;
    await Promise.all(load);
    expect([...statuses].sort()).toEqual([200, 503]);
    for (const wallet of acknowledged.slice(-30)) await expectSigns(wallet);
  },
);

// It takes the ten seconds that the signer is given.
test.skipIf(process.platform !== 'linux' || process.env.TEST_LONG !== '1')(
  'while the signer is stopped, requests that need no key are answered; then it is replaced',
  async () => {
    const made = await call('/v1/wallets', { chain_type: 'ethereum' });
    const wallet = made.body as { id: string; address: string };
    const pid = signerPid();
    process.kill(pid, 'SIGSTOP');
    const hung = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0
        ? call(`/v1/wallets/${wallet.id}/rpc`, hello)
        : call('/v1/wallets', { chain_type: 'solana' }),
    );
    const settled = Promise.allSettled(hung);
    const rules = [{ name: 'all', method: '*', conditions: [], action: 'ALLOW' }];
    const tookMs: number[] = [];
    try {
      for (let round = 0; round < 20; round += 1) {
        const startedMs = performance.now();
        const policy = { version: '1.0', name: `round ${round}`, chain_type: 'ethereum', rules };
        expect((await call('/v1/policies', policy)).status).toBe(200);
        tookMs.push(performance.now() - startedMs);
        await pause(100);
      }
      // Half of them on a machine that does other things, too.
      expect(tookMs.sort((one, other) => one - other)[10]).toBeLessThan(1_000);
      await settled;
    } finally {
      if (signerPid() === pid) process.kill(pid, 'SIGCONT');
    }
    const answers = await Promise.all(hung);
    expect(new Set(answers.map(({ status, retryAfter }) => `${status} ${String(retryAfter)}`))).toEqual(
      new Set(['503 2']),
    );
    await expect
      .poll(async () => (await call(`/v1/wallets/${wallet.id}/rpc`, hello)).status, { timeout: 30_000 })
      .toBe(200);
    expect(signerPid()).not.toBe(pid);
  },
  90_000,
);

test.skipIf(process.platform !== 'linux')('the signer ends with a server that is killed', async () => {
  const pid = signerPid();
  await server.stop('SIGKILL');
  const isAlive = (): boolean => {
    try {
      return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  };
  for (let tries = 0; isAlive() && tries < 600; tries += 1) await pause(50);
  expect(isAlive()).toBe(false);
});
