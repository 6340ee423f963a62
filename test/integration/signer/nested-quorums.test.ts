import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { rotateSealedKeys } from '../../../src/admin/rotate-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { newOwner, type Owner } from '../../support/signer/owner.ts';

// Someone who can write to the database exchanges the members of a key quorum that a change has named by its id.

const [first, inner, attacker] = [newOwner(), newOwner(), newOwner()];

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  beforeAll(async () => {
    server = await openOperations(kind);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function run(id: OperationId, input: RunInput, by?: Owner) {
    const key = by?.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    const answer = await server.run(id, { ...input, ...(key === undefined ? {} : { signWith: [key] }) });
    return answer as { status: number; body: { id: string } };
  }

  async function made(id: OperationId, body: object): Promise<string> {
    const answer = await run(id, { body });
    expect(answer.status).toBe(200);
    return answer.body.id;
  }

  async function signs(walletId: string, by: Owner): Promise<number> {
    const body = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
    return (await run('walletRpc', { path: { wallet_id: walletId }, body }, by)).status;
  }

  type Rows = Record<string, Record<string, unknown>>;

  function inDatabase<T>(work: (em: OperationContext['em']) => Promise<T>): Promise<T> {
    return server.database.orm.em.fork().transactional((em) => work(em as OperationContext['em']));
  }

  function write(table: string, [column, value]: [string, unknown], change: Record<string, unknown>) {
    return inDatabase((em) =>
      em.getKysely<Rows>().updateTable(table).set(change).where(column, '=', value).execute(),
    );
  }

  function read(table: string, [column, value]: [string, unknown]) {
    return inDatabase((em) =>
      em.getKysely<Rows>().selectFrom(table).selectAll().where(column, '=', value).executeTakeFirstOrThrow(),
    );
  }

  test('the key store follows the changes that it has seen, and no others', async () => {
    const ownersId = await made('createKeyQuorum', {
      public_keys: [first.publicKey],
      authorization_threshold: 1,
    });
    const innerId = await made('createKeyQuorum', {
      public_keys: [inner.publicKey],
      authorization_threshold: 1,
    });
    const walletId = await made('createWallet', { chain_type: 'ethereum', owner_id: ownersId });
    const path = { key_quorum_id: ownersId };
    const updated = await run('updateKeyQuorum', { path, body: { key_quorum_ids: [innerId] } }, first);
    expect(updated.status).toBe(200);
    expect([await signs(walletId, first), await signs(walletId, inner)]).toEqual([200, 200]);
    expect(await signs(walletId, attacker)).toBe(401);

    // The server believes its database from here on, and the key store does not.
    const ofInner: [string, unknown] = ['key_quorum_id', innerId];
    await write('key_quorum_members', ofInner, { member: attacker.publicKey });
    await expect(signs(walletId, attacker)).rejects.toThrow('lacks signatures');
    const ofOwners: [string, unknown] = ['key_quorum_id', ownersId];
    const { change } = await read('key_quorum_changes', ofOwners);
    const forged = String(change).replaceAll(inner.publicKey, attacker.publicKey);
    expect(forged).not.toBe(change);
    await write('key_quorum_changes', ofOwners, { change: forged });
    await expect(signs(walletId, attacker)).rejects.toThrow();
    await write('key_quorum_changes', ofOwners, { change });
    await write('key_quorum_members', ofInner, { member: inner.publicKey });
    expect(await signs(walletId, inner)).toBe(200);

    await rotate();
    expect(await signs(walletId, inner)).toBe(200);
    await inDatabase((em) =>
      em.getKysely<Rows>().deleteFrom('key_quorum_seals').where('id', '=', ownersId).execute(),
    );
    await expect(signs(walletId, first)).rejects.toThrow('expected the seal of the changes');
  });

  /** The master key from before is gone afterwards. */
  async function rotate(): Promise<void> {
    const old = localMasterKey('test', Buffer.alloc(32, 7), systemEntropy);
    const next = localMasterKey('next', Buffer.alloc(32, 8), systemEntropy);
    const both = createKeyStore({ masterKeys: [next, old], entropy: systemEntropy });
    await rotateSealedKeys(both, inUnitOf(unitsOf(server.database)), {
      onProgress: () => undefined,
      record: async () => undefined,
    });
    const { services } = server;
    const { isLocal = false } = services.keyStore;
    const alone = createKeyStore({ masterKeys: [next], entropy: systemEntropy });
    Object.assign(services, { keyStore: { ...alone, isLocal } });
  }

  test('a key quorum that was changed twice, and deleted, leaves nothing', async () => {
    const id = await made('createKeyQuorum', { public_keys: [first.publicKey], authorization_threshold: 1 });
    const walletId = await made('createWallet', { chain_type: 'ethereum', owner_id: id });
    const path = { key_quorum_id: id };
    await run('updateKeyQuorum', { path, body: { public_keys: [inner.publicKey] } }, first);
    await run('updateKeyQuorum', { path, body: { public_keys: [attacker.publicKey] } }, inner);
    expect([await signs(walletId, inner), await signs(walletId, attacker)]).toEqual([401, 200]);
    const body = { owner: { public_key: first.publicKey } };
    await run('updateWallet', { path: { wallet_id: walletId }, body }, attacker);
    expect((await run('deleteKeyQuorum', { path }, attacker)).status).toBe(200);
    await expect(read('key_quorum_seals', ['id', id])).rejects.toThrow();
  });
});
