import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemEntropy } from '../../src/adapters/runtime.ts';
import { recordEvent } from '../../src/domain/base/events/events.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { checkMasterKey } from '../../src/domain/wallets/wallets/wallet-keys.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import { resetDatabase } from '../../src/storage/open-database.ts';
import { pauseRecording } from '../ledger/record-answers.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { inTransaction, startMs } from './contexts.ts';

const restored = { wallet_id: 'w', wallet_address: '0x', chain_type: 'ethereum' };

// The events here are the test's own.
pauseRecording();

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const events = () =>
    database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .selectAll()
      .orderBy('sequence')
      .execute();

  test('an event is committed or rolled back with its change', async () => {
    await inTransaction(database, (context) =>
      recordEvent(context, { appId: context.app.id, type: 'wallet.restored', payload: restored }),
    );
    const undone = inTransaction(database, async (context) => {
      await recordEvent(context, { appId: context.app.id, type: 'wallet.restored', payload: restored });
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    expect(await events()).toEqual([
      {
        sequence: 1,
        id: expect.stringMatching(/^msg_[a-z][0-9a-z]{23}$/),
        app_id: 'acme',
        type: 'wallet.restored',
        payload: JSON.stringify({ type: 'wallet.restored', ...restored }),
        resource_id: 'w',
        created_at_ms: startMs,
        fanned_out_at_ms: null,
      },
    ]);
  });

  test('an event that violates the contract is a bug and is not recorded', async () => {
    const { wallet_id: _, ...incomplete } = restored;
    const record = (type: string, payload: object) =>
      inTransaction(database, (context) => recordEvent(context, { appId: context.app.id, type, payload }));
    await expect(record('wallet.restored', incomplete)).rejects.toThrow(
      /^event `wallet.restored`.*wallet_id/,
    );
    await expect(record('wallet.invented', restored)).rejects.toThrow(
      'the contract has no event `wallet.invented`',
    );
    expect(await events()).toEqual([]);
  });

  test('a wrong or missing master key is detected at start', async () => {
    const old = localMasterKey('old', systemEntropy.bytes(32), systemEntropy);
    const next = localMasterKey('next', systemEntropy.bytes(32), systemEntropy);
    const start = (...masterKeys: [typeof old, ...(typeof old)[]]) =>
      database.orm.em
        .fork()
        .transactional((em) =>
          checkMasterKey(em as SqlEntityManager, createKeyStore({ masterKeys, entropy: systemEntropy })),
        );
    await start(old);
    await start(old);
    const impostor = localMasterKey('old', systemEntropy.bytes(32), systemEntropy);
    await expect(start(impostor)).rejects.toThrow('master key `old`');
    await expect(start(next)).rejects.toThrow('master key `old` is not configured');
    await start(next, old);
    await expect(start(old)).rejects.toThrow('master key `next` is not configured');
    await resetDatabase(database);
    await expect(start(impostor, next), 'a reset does not forget the key').rejects.toThrow(
      'master key `old`',
    );
  });
});
