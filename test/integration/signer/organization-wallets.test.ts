import { randomBytes } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sealTo } from '../../contract/wallets/keys/hpke-client.ts';
import { databaseKinds } from '../../support/databases.ts';
import type { TestOperations } from '../../support/run-operations.ts';
import { keptWallets } from '../../support/signer/kept-wallets.ts';
import { keyOf, openLogins } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// New wallets of an organization whose owner the request does not name: its default key quorum.

const [owner, other] = [keyOf(newOwner()), keyOf(newOwner())];

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  let wallets: ReturnType<typeof keptWallets>;
  let quorumId: string;
  let entity: { type: 'organization'; id: string };
  beforeAll(async () => {
    server = await openLogins(kind, true);
    wallets = keptWallets(server);
    quorumId = await wallets.quorumOf(owner);
    const terms = { display_name: 'Globex', default_key_quorum_id: quorumId };
    entity = { type: 'organization', id: await wallets.made('createOrganization', terms) };
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function isSealed(walletId: string): Promise<boolean> {
    return (await wallets.rowOf('wallet_keys', ['wallet_id', walletId])).authority !== null;
  }

  test('they are kept for its default key quorum of that time', async () => {
    const body = { chain_type: 'ethereum', entity };
    const walletId = await wallets.made('createWallet', body);
    await wallets.expectKept(walletId, owner);
    type Batch = { results: { success: boolean; wallet: { id: string } }[] };
    const batch = await wallets.done<Batch>('createWalletsBatch', { body: { wallets: [body, body] } });
    for (const { wallet } of batch.results) await wallets.expectKept(wallet.id, owner);

    const path = { organization_id: entity.id };
    const changed = { default_key_quorum_id: await wallets.quorumOf(other) };
    await wallets.done('updateOrganization', { path, body: changed });
    await wallets.expectKept(await wallets.made('createWallet', body), other);
    await wallets.expectKept(walletId, owner);
    // Whatever the members of the key quorum agree to.
    const change = { path: { key_quorum_id: quorumId }, body: { public_keys: [other.publicKey] } };
    await wallets.done('updateKeyQuorum', change, owner);
    await wallets.expectKept(walletId, other);
  });

  test('they are kept when they are imported', async () => {
    const key = randomBytes(32);
    const wallet = {
      ...{ address: privateKeyToAccount(`0x${key.toString('hex')}`).address, chain_type: 'ethereum' },
      ...{ encryption_type: 'HPKE', entropy_type: 'private-key' },
    };
    const { encryption_public_key: recipient } = await wallets.done('initWalletImport', { body: wallet });
    const terms = { display_name: 'Initech', default_key_quorum_id: await wallets.quorumOf(owner) };
    const initech = { type: 'organization', id: await wallets.made('createOrganization', terms) };
    const body = { wallet: { ...wallet, ...(await sealTo(recipient!, key)) }, entity: initech };
    await wallets.expectKept(await wallets.made('submitWalletImport', body), owner);
  });

  // SQLite has one writer, which waits for the key.
  test.runIf(kind === 'postgres')(
    'they are kept for the default key quorum of when they are stored',
    async () => {
      const terms = { display_name: 'Hooli', default_key_quorum_id: await wallets.quorumOf(owner) };
      const hooli = { type: 'organization', id: await wallets.made('createOrganization', terms) };
      const path = { organization_id: hooli.id };
      const changed = { default_key_quorum_id: await wallets.quorumOf(other) };
      const { keyStore } = server.services;
      const drawing: typeof keyStore.createWalletKey = async (...asked) => {
        Object.assign(server.services, { keyStore });
        await wallets.done('updateOrganization', { path, body: changed });
        return keyStore.createWalletKey(...asked);
      };
      Object.assign(server.services, { keyStore: { ...keyStore, createWalletKey: drawing } });
      const walletId = await wallets.made('createWallet', { chain_type: 'ethereum', entity: hooli });
      expect(server.services.keyStore).toBe(keyStore);
      await wallets.expectKept(walletId, other);
    },
  );

  test('they have the owner that the request names, or none', async () => {
    const body = { chain_type: 'ethereum', entity };
    const named = { owner: { public_key: other.publicKey } };
    await wallets.expectKept(await wallets.made('createWallet', { ...body, ...named }), other);
    const free = await wallets.made('createWallet', { ...body, owner: null });
    expect([await isSealed(free), await wallets.signs(free)]).toEqual([false, 200]);
  });
});
