import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import { transferAccount } from '../../../src/domain/wallets/users/linked-accounts.ts';
import { createNotes } from '../../../src/ports/operation-context.ts';
import { call, refusal } from '../../support/call.ts';
import { databaseKinds } from '../../support/databases.ts';
import { askControl, asOtherApp, control } from '../../support/other-app.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { startSandbox } from '../../support/sandbox.ts';

const email = { type: 'email', address: 'alice@example.com' };
const phone = { type: 'phone', number: '+1 555 555 0100' };
const github = { type: 'github_oauth', subject: '7', username: 'maxpower' };
const token = { type: 'custom_auth', custom_user_id: 'alice' };

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  beforeEach(async () => {
    operations = await openOperations(kind);
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  const create = async (...linked_accounts: object[]): Promise<string> => {
    const { body } = await operations.run('createUser', { body: { linked_accounts } });
    return (body as { id: string }).id;
  };
  const transfer = (fromUserId: string, toUserId: string) =>
    operations.database.orm.em.fork().transactional((em) =>
      transferAccount(
        {
          ...{ ids: operations.services.ids, nowMs: operations.clock.nowMs },
          ...{ em: em as SqlEntityManager, notes: createNotes(), by: { origin: 'command_line' } },
        },
        { fromUserId, toUserId },
      ),
    );
  const eventsSince = async (count: number) => {
    const rows = await operations.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select(['type', 'payload'])
      .orderBy('sequence')
      .execute();
    return rows.slice(count).map(({ type, payload }) => ({ type, payload: JSON.parse(payload) }));
  };

  test('the account moves, its user is deleted, and one event reports both', async () => {
    const [bob, alice] = [await create(github), await create(email)];
    await transfer(bob, alice);
    const { body: user } = await operations.run('getUser', { path: { user_id: alice } });
    expect(user).toMatchObject({ linked_accounts: [{ type: 'email' }, { type: 'github_oauth' }] });
    expect((await operations.run('getUser', { path: { user_id: bob } })).status).toBe(404);
    const found = await operations.run('searchUsers', { body: { searchTerm: 'maxpow' } });
    expect(found.body).toMatchObject({ id: alice });
    expect(await eventsSince(2)).toEqual([
      {
        type: 'user.transferred_account',
        payload: {
          type: 'user.transferred_account',
          fromUser: { id: bob },
          toUser: user,
          account: (user as { linked_accounts: object[] }).linked_accounts[1],
          deletedUser: true,
        },
      },
    ]);
  });

  test('a user with more than one account, a wallet or a key quorum keeps them', async () => {
    const alice = await create(email);
    const two = await create(phone, token);
    await expect(transfer(two, alice)).rejects.toMatchObject({ code: 'invalid_state' });
    const owner = await create({ type: 'custom_auth', custom_user_id: 'owner' });
    await operations.run('createWallet', { body: { chain_type: 'ethereum', owner: { user_id: owner } } });
    await expect(transfer(owner, alice)).rejects.toMatchObject({ code: 'invalid_state' });
    const second = await create({ type: 'email', address: 'second@example.com' });
    await expect(transfer(second, alice)).rejects.toMatchObject({ code: 'invalid_state' });
    await expect(transfer(alice, alice)).rejects.toMatchObject({ code: 'invalid_data' });
    await expect(transfer('cunknown', alice)).rejects.toMatchObject({ code: 'not_found' });
    expect((await eventsSince(0)).map(({ type }) => type)).toEqual(Array(4).fill('user.created'));
  });

  test('of opposite transfers at the same moment one happens', async () => {
    const [bob, alice] = [await create(phone), await create(email)];
    const ended = await Promise.allSettled([transfer(bob, alice), transfer(alice, bob)]);
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const left = await operations.run('listUsers', {});
    expect(left.body).toMatchObject({ data: [{ linked_accounts: [{}, {}] }] });
  });
});

test('operators use the control plane, the admin port and the command line', async () => {
  const dataFolder = temporaryFolder();
  await using sandbox = await startSandbox({ dataFolder, adminPort: 0 });
  const create = async (account: object): Promise<string> => {
    const { body } = await call(sandbox, 'createUser', { body: { linked_accounts: [account] } as never });
    return body.id;
  };
  const alice = await create({ type: 'email', address: 'new@example.com' });
  const byControl = await control(sandbox, 'POST', `users/${alice}/take_over`, {
    from_user_id: await create(phone),
  });
  expect(byControl).toEqual({ id: alice, app_id: sandbox.appId, linked_accounts: ['email', 'phone'] });
  const other = await asOtherApp(sandbox);
  const { body: outsider } = await call(other, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'stranger' }] },
  });
  const foreign = await askControl(sandbox, 'POST', `users/${alice}/take_over`, {
    from_user_id: outsider.id,
  });
  expect(foreign.status).toBe(404);

  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  const restored = {
    id: wallet.id,
    app_id: sandbox.appId,
    address: wallet.address,
    chain_type: 'ethereum',
  };
  await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
  expect(await control(sandbox, 'POST', `wallets/${wallet.id}/restore`)).toEqual(restored);
  const again = await askControl(sandbox, 'POST', `wallets/${wallet.id}/restore`);
  expect(again).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
  const byAdmin = await fetch(`${sandbox.adminUrl}/wallets/${wallet.id}/restore`, { method: 'POST' });
  expect(await byAdmin.json()).toEqual(restored);

  const dave = await create({ type: 'custom_auth', custom_user_id: 'dave' });
  const admin = await fetch(`${sandbox.adminUrl}/users/${alice}/take_over`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ from_user_id: dave }),
  });
  expect(await admin.json()).toMatchObject({ linked_accounts: ['email', 'phone', 'custom_auth'] });

  const eve = await create({ type: 'github_oauth', subject: '7', username: 'eve' });
  const args = ['users', 'take-over', alice, '--from', eve, '--data', dataFolder, '--json'];
  const { code, stdout } = await runCommand(args);
  expect({ code, user: JSON.parse(stdout) }).toMatchObject({
    code: 0,
    user: { linked_accounts: ['email', 'phone', 'custom_auth', 'github_oauth'] },
  });
  expect((await refusal(sandbox, 'getUser', { path: { user_id: eve } })).status).toBe(404);
});
