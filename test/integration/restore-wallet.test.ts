import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { restoreWallet } from '../../src/domain/wallets/wallets/update-wallet.ts';
import { createNotes } from '../../src/ports/operation-context.ts';
import { call, refusal } from '../support/call.ts';
import { databaseKinds } from '../support/databases.ts';
import { runCommand, temporaryFolder } from '../support/run-custos.ts';
import { openOperations, type TestOperations } from '../support/run-operations.ts';
import { startSandbox } from '../support/sandbox.ts';

const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  beforeAll(async () => {
    operations = await openOperations(kind);
  });
  afterAll(() => operations[Symbol.asyncDispose]());

  const restore = (id: string) =>
    operations.database.orm.em.fork().transactional((em) =>
      restoreWallet(
        {
          ...operations.services,
          em: em as SqlEntityManager,
          notes: createNotes(),
          nowMs: 1,
          by: { origin: 'command_line' },
        },
        id,
      ),
    );

  test('a restored wallet can be used as before by its owner, and the event is recorded', async () => {
    const made = await operations.run('createWallet', {
      body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey }, external_id: 'first' },
    });
    if (made.status !== 200) throw new Error('no wallet');
    const wallet = made.body as { id: string; address: string };
    const path = { wallet_id: wallet.id };
    await operations.run('archiveWallet', { path });
    const signed = { path, body: message, signWith: [aliceKey.privateKey] };
    expect((await operations.run('walletRpc', signed)).status).toBe(404);

    await restore('ext_wal_first');
    expect((await operations.run('walletRpc', signed)).status).toBe(200);
    expect((await operations.run('getWallet', { path })).body).toEqual(made.body);
    const events = await operations.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select(['app_id', 'payload'])
      .where('type', '=', 'wallet.restored')
      .execute();
    expect(events.map((event) => ({ ...event, payload: JSON.parse(event.payload) }))).toEqual([
      {
        app_id: operations.app.id,
        payload: {
          type: 'wallet.restored',
          wallet_id: wallet.id,
          wallet_address: wallet.address,
          chain_type: 'ethereum',
        },
      },
    ]);
    await expect(restore(wallet.id)).rejects.toMatchObject({ code: 'invalid_state' });
  });

  test.each(['fmfdj6yqly31huorjqzq38zc', 'x\0y', 'ext_wal_none', 'ext_wal_x\0y'])(
    'a wallet %j that does not exist is not found',
    async (id) => {
      await expect(restore(id)).rejects.toMatchObject({ code: 'not_found' });
    },
  );
});

test('`custos wallets restore` restores a wallet of a running sandbox', async () => {
  const dataFolder = temporaryFolder();
  await using sandbox = await startSandbox({ dataFolder });
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  const path = { wallet_id: wallet.id };
  await call(sandbox, 'archiveWallet', { path });
  expect((await refusal(sandbox, 'getWallet', { path })).status).toBe(404);
  const { code, stdout } = await runCommand([
    'wallets',
    'restore',
    wallet.id,
    '--data',
    dataFolder,
    '--json',
  ]);
  expect({ code, printed: JSON.parse(stdout) }).toEqual({
    code: 0,
    printed: { id: wallet.id, app_id: sandbox.appId, address: wallet.address, chain_type: 'solana' },
  });
  expect((await call(sandbox, 'getWallet', { path })).body).toEqual(wallet);
  const again = await runCommand(['wallets', 'restore', wallet.id, '--data', dataFolder]);
  expect(again).toMatchObject({
    code: 1,
    stderr: `custos: the wallet \`${wallet.id}\` is not archived\n`,
  });
});
