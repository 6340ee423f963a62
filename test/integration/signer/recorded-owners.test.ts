import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { messagePolicy } from '../../contract/policies/rules.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { behindProtocol } from '../../support/signer/behind-protocol.ts';
import { inDatabase, type Key, keyOf } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// In earlier versions, a change of the owner to the same single key left the database with another key quorum of that
// key than the one that the key store knows as the owner.

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

describe.each(databaseKinds)('on %s, behind the protocol of the signer', (kind) => {
  let server: TestOperations;
  beforeAll(async () => {
    server = await openOperations(kind, { replaceKeyStore: behindProtocol((task) => task) });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function run(id: OperationId, input: RunInput, by?: Key) {
    const signed = by === undefined ? {} : { signWith: [by.privateKey] };
    return (await server.run(id, { ...input, ...signed })) as {
      status: number;
      body: Record<string, string>;
    };
  }
  async function made(id: OperationId, body: object): Promise<Record<string, string>> {
    const answer = await run(id, { body });
    expect(answer, JSON.stringify(answer.body)).toHaveProperty('status', 200);
    return answer.body;
  }

  const [owner, other] = [keyOf(newOwner()), keyOf(newOwner())];
  let wallet: Record<string, string>;
  let policy: Record<string, string>;
  let known: string;
  let stored: string;
  beforeEach(async () => {
    const ofOwner = { public_keys: [owner.publicKey], authorization_threshold: 1 };
    known = (await made('createKeyQuorum', ofOwner)).id!;
    stored = (await made('createKeyQuorum', ofOwner)).id!;
    wallet = await made('createWallet', { chain_type: 'ethereum', owner_id: known });
    policy = await made('createPolicy', { ...messagePolicy(['hello']), owner_id: known });
    await write('wallets', wallet.id!, { owner_id: stored });
    await write('policies', policy.id!, { owner_id: stored });
  });

  function write(table: 'wallets' | 'policies', id: string, change: Record<string, string>) {
    return inDatabase(server, (em) =>
      em.getKysely<Tables>().updateTable(table).set(change).where('id', '=', id).execute(),
    );
  }

  const uses = (by: Key) => run('walletRpc', { path: { wallet_id: wallet.id! }, body: hello }, by);
  const gives = (key: Key, by: Key) => {
    const body = { owner: { public_key: key.publicKey } };
    return run('updateWallet', { path: { wallet_id: wallet.id! }, body }, by);
  };

  test('the owner uses the wallet and gives it away, and the new owner uses it', async () => {
    expect(await uses(owner)).toMatchObject({ status: 200 });
    expect(await gives(other, owner)).toMatchObject({ status: 200 });
    expect(await uses(owner)).toMatchObject({ status: 401 });
    expect(await uses(other)).toMatchObject({ status: 200 });
  });

  test('the same key once more makes both the same: the other key quorum is not needed any more', async () => {
    expect(await gives(owner, owner)).toMatchObject({ status: 200 });
    const deleted = await run('deleteKeyQuorum', { path: { key_quorum_id: known } }, owner);
    expect(deleted.status).toBe(200);
    expect(await uses(owner)).toMatchObject({ status: 200 });
  });

  test('the owner changes the policy', async () => {
    const path = { policy_id: policy.id! };
    const body = { rules: messagePolicy(['other']).rules };
    expect(await run('updatePolicy', { path, body }, owner)).toMatchObject({ status: 200 });
    expect(await run('updatePolicy', { path, body: { rules: [] } }, other)).toMatchObject({ status: 401 });
  });

  test('a database that names a key quorum of another key does not give the wallet away', async () => {
    const foreign = await made('createKeyQuorum', {
      public_keys: [other.publicKey],
      authorization_threshold: 1,
    });
    await write('wallets', wallet.id!, { owner_id: foreign.id! });
    await expect(uses(other)).rejects.toThrow('lacks signatures');
    await expect(gives(other, other)).rejects.toThrow('lacks signatures');
  });

  test('a key quorum that has changed since is the owner as it is now', async () => {
    const path = { key_quorum_id: known };
    const change = { public_keys: [other.publicKey] };
    expect(await run('updateKeyQuorum', { path, body: change }, owner)).toMatchObject({ status: 200 });
    // The database believes the key of before, which the key store does not.
    await expect(uses(owner)).rejects.toThrow('lacks signatures');
  });
});
