import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findLostWallets } from '../../../src/domain/wallets/wallet-authorities/lost-wallets.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { keptWallets } from '../../support/signer/kept-wallets.ts';
import { inDatabase, keyOf } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// An earlier version left the database with another key quorum of the owner's key than the one that the key store
// knows. The latter can be deleted, since nothing refers to it.

const [owner, clerk] = [keyOf(newOwner()), keyOf(newOwner())];

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  let wallets: ReturnType<typeof keptWallets>;
  beforeEach(async () => {
    server = await openOperations(kind);
    wallets = keptWallets(server);
  });
  afterEach(() => server[Symbol.asyncDispose]());

  const find = (most?: number) => inDatabase(server, (em) => findLostWallets(em, most));
  const remove = (quorumId: string) =>
    wallets.run('deleteKeyQuorum', { path: { key_quorum_id: quorumId } }, owner);

  /** The key store knows `known` as its owner, and the database has another key quorum of the same key. */
  async function walletOf(known: string): Promise<string> {
    const walletId = await wallets.made('createWallet', { chain_type: 'ethereum', owner_id: known });
    await wallets.write('wallets', ['id', walletId], { owner_id: await wallets.quorumOf(owner) });
    return walletId;
  }

  test('wallets are lost with the key quorum that the key store knows, and found again with its rows', async () => {
    const signerId = await wallets.quorumOf(clerk);
    const signers = { additional_signers: [{ signer_id: signerId }] };
    await wallets.made('createWallet', { chain_type: 'ethereum' });
    const named = { chain_type: 'ethereum', owner: { public_key: owner.publicKey } };
    await wallets.made('createWallet', { ...named, ...signers });
    // Key quorums that have changed keep the reference of before.
    const body = { public_keys: [clerk.publicKey] };
    const changed = await wallets.made('createWallet', named);
    const { owner_id: changedId } = await wallets.rowOf('wallets', ['id', changed]);
    await wallets.done('updateKeyQuorum', { path: { key_quorum_id: String(changedId) }, body }, owner);
    const known = await wallets.quorumOf(owner);
    const walletId = await walletOf(known);
    expect(await find()).toEqual({ examined: 3, hasMore: false, lost: 0, named: [] });
    expect(await wallets.signs(walletId, owner)).toBe(200);

    const rows = [
      ['key_quorums', await wallets.rowOf('key_quorums', ['id', known])],
      ['key_quorum_members', await wallets.rowOf('key_quorum_members', ['key_quorum_id', known])],
    ] as const;
    expect((await remove(known)).status).toBe(200);
    await expect(wallets.signs(walletId, owner)).rejects.toThrow('lacks signatures');
    const lost = { lost: 1, named: [{ id: walletId, appId: server.app.id }] };
    expect(await find()).toEqual({ examined: 3, hasMore: false, ...lost });

    await inDatabase(server, async (em) => {
      const database = em.getKysely<Record<string, Record<string, unknown>>>();
      for (const [table, row] of rows) await database.insertInto(table).values(row).execute();
    });
    expect(await find()).toMatchObject({ lost: 0 });
    expect(await wallets.signs(walletId, owner)).toBe(200);
  });

  test('the first 20 are named, and no more are examined than was asked for', async () => {
    const known = await wallets.quorumOf(owner);
    const lost = [];
    for (let count = 0; count < 22; count += 1) lost.push(await walletOf(known));
    await remove(known);
    const found = await find();
    expect(found).toMatchObject({ examined: 22, hasMore: false, lost: 22 });
    expect(found.named.map(({ id }) => id)).toEqual(lost.sort().slice(0, 20));
    expect(await find(21)).toMatchObject({ examined: 21, hasMore: true, lost: 21 });
    await wallets.done('archiveWallet', { path: { wallet_id: lost[0]! } }, owner);
    expect(await find()).toMatchObject({ examined: 21, lost: 21 });
  });
});
