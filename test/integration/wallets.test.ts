import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { mnemonicToAccount } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { walletKeyBinding } from '../../src/domain/base/sealed-keys/sealed-keys.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { signWithWalletKey } from '../../src/domain/wallets/wallet-uses/use-wallet.ts';
import { createWallet, createWalletsBatch } from '../../src/domain/wallets/wallets/create-wallet.ts';
import { findWallet, listWallets, type WalletFilter } from '../../src/domain/wallets/wallets/find-wallet.ts';
import { updateWallet } from '../../src/domain/wallets/wallets/update-wallet.ts';
import type { WalletRow } from '../../src/domain/wallets/wallets/wallet.entity.ts';
import { findWalletKey } from '../../src/domain/wallets/wallets/wallet-keys.ts';
import { hpkeRecipientFromSeed, openHpke } from '../../src/engine/crypto/hpke.ts';
import { resetDatabase } from '../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { withoutOwner } from '../support/unsigned-proof.ts';
import { contextOf, inTransaction, startMs } from './contexts.ts';

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const reading = (appId = 'acme') => contextOf(database.orm.em.fork() as SqlEntityManager, appId);

  test('the sealed phrase derives the address, and no row contains any of it', async () => {
    const wallet = await inTransaction(database, (context) =>
      createWallet(context, { chain_type: 'ethereum' }),
    );
    const { publicKeyBytes: recipient, privateKeyBytes } = await hpkeRecipientFromSeed(randomBytes(32));
    const context = reading();
    const exported = async (form: 'phrase' | 'private-key') => {
      const sealed = await findWalletKey(context, wallet);
      const message = await context.keyStore.exportWalletKey(sealed, walletKeyBinding(wallet), {
        form,
        recipient,
      });
      const opened = await openHpke({ recipientPrivateKeyBytes: privateKeyBytes, ...message! });
      return Buffer.from(opened).toString('utf8');
    };
    const phrase = await exported('phrase');
    const key = Buffer.from((await exported('private-key')).replace(/^0x/, ''), 'hex');
    expect(key).toHaveLength(32);
    expect(phrase.split(' ')).toHaveLength(12);
    expect(mnemonicToAccount(phrase).address).toBe(wallet.address);
    const rows = await database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('wallet_keys')
      .selectAll()
      .execute();
    expect(rows).toHaveLength(1);
    for (const bytes of [rows[0]?.sealed_secret, rows[0]?.wrapped_data_key]) {
      expect(Buffer.from(bytes as Buffer).includes(key.subarray(0, 8))).toBe(false);
    }
  });

  test('a key that is moved to the row of another wallet cannot be opened', async () => {
    const make = () =>
      inTransaction(database, (context) => createWallet(context, { chain_type: 'ethereum' }));
    const [mine, other] = [await make(), await make()];
    const db = database.orm.em.fork().getKysely<Tables>();
    const stolen = await db
      .selectFrom('wallet_keys')
      .selectAll()
      .where('wallet_id', '=', other.id)
      .executeTakeFirstOrThrow();
    const { wallet_id: _, ...key } = stolen;
    await db.updateTable('wallet_keys').set(key).where('wallet_id', '=', mine.id).execute();
    const sign = (wallet: WalletRow) =>
      signWithWalletKey(reading(), wallet, withoutOwner, {
        method: 'secp256k1_sign',
        params: { hash: `0x${'01'.repeat(32)}` },
      });
    await expect(sign(mine)).rejects.toThrow('cannot be opened for this wallet');
    expect((await sign(other)).signature).toMatch(/^0x/);
  });

  test('of concurrent requests for one external id exactly one succeeds', async () => {
    const tries = Array.from({ length: 12 }, () =>
      inTransaction(database, (context) =>
        createWallet(context, { chain_type: 'solana', external_id: 'wanted' }),
      ),
    );
    const outcomes = await Promise.allSettled(tries);
    const winners = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    expect(winners).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'resource_conflict' });
    }
    const { id } = await findWallet(reading(), 'ext_wal_wanted');
    expect(winners[0]).toMatchObject({ value: { id } });
    const keys = await database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('wallet_keys')
      .select('wallet_id')
      .execute();
    expect(keys).toEqual([{ wallet_id: id }]);
    // Another app has external ids of its own.
    await inTransaction(
      database,
      (context) => createWallet(context, { chain_type: 'solana', external_id: 'wanted' }),
      {
        appId: 'globex',
      },
    );
  });

  test('a failure in a batch rolls back only its own wallet', async () => {
    const results = await inTransaction(database, (context) =>
      createWalletsBatch(context, [
        { chain_type: 'ethereum', external_id: 'one' },
        { chain_type: 'ethereum', external_id: 'one' },
        { chain_type: 'solana', owner_id: 'z'.repeat(24) },
        { chain_type: 'solana', external_id: 'two' },
      ]),
    );
    expect(results.map((result) => (result.success ? result.wallet.external_id : result.code))).toEqual([
      'one',
      'resource_conflict',
      'invalid_data',
      'two',
    ]);
    const { wallets } = await listWallets(reading(), {}, {});
    expect(wallets.map((wallet) => wallet.external_id).sort()).toEqual(['one', 'two']);
  });

  test('a change is refused when the owner was replaced after the check', async () => {
    const wallet = await inTransaction(database, (context) =>
      createWallet(context, { chain_type: 'solana' }),
    );
    const other = database.orm.em.fork();
    await other.begin();
    const owner = { owner_id: 'z'.repeat(24) };
    await other.getKysely<Tables>().updateTable('wallets').set(owner).where('id', '=', wallet.id).execute();
    const late = inTransaction(database, (context) =>
      updateWallet(context, wallet.id, { display_name: 'Late' }),
    );
    // On PostgreSQL it reads the ownerless wallet and then waits for the row lock; on SQLite it waits from the start.
    await setTimeout(200);
    await Promise.all([
      other.commit(),
      expect(late).rejects.toMatchObject({
        code: kind === 'postgres' ? 'resource_conflict' : 'missing_or_empty_authorization_header',
      }),
    ]);
    expect(await findWallet(reading(), wallet.id)).toMatchObject({ ...wallet, ...owner });
  });

  describe('pages', () => {
    const makeAt = (nowMs: number, count: number) =>
      inTransaction(
        database,
        async (context) => {
          const rows: WalletRow[] = [];
          for (let index = 0; index < count; index += 1) {
            rows.push(await createWallet(context, { chain_type: index % 3 === 0 ? 'solana' : 'stellar' }));
          }
          return rows;
        },
        { nowMs },
      );

    async function walk(filter: WalletFilter, between: () => Promise<unknown>): Promise<WalletRow[]> {
      const met: WalletRow[] = [];
      let cursor: string | null = null;
      do {
        const page = await listWallets(reading(), filter, {
          limit: 5,
          ...(cursor === null ? {} : { cursor }),
        });
        expect(page.wallets.length).toBeLessThanOrEqual(5);
        met.push(...page.wallets);
        cursor = page.nextCursor;
        await between();
      } while (cursor !== null);
      return met;
    }

    test('contain every wallet once, newest first, while others are created and archived', async () => {
      const made: WalletRow[] = [];
      // Many have the same time and are ordered by id.
      for (const [offset, count] of [
        [0, 8],
        [1, 7],
        [1, 4],
        [9, 4],
      ] as const)
        made.push(...(await makeAt(startMs + offset, count)));
      const met = await walk({}, () => makeAt(startMs + 10, 1));
      expect(met.map(({ id }) => id).sort()).toEqual(made.map(({ id }) => id).sort());
      const ages = met.map((wallet) => wallet.created_at_ms);
      expect(ages).toEqual([...ages].sort((left, right) => right - left));

      const solana = await walk({ chainType: 'solana' }, async () => {});
      expect(solana.every((wallet) => wallet.chain_type === 'solana')).toBe(true);
      expect(solana.length).toBeGreaterThan(5);
    });

    test('continue from a wallet that was archived meanwhile', async () => {
      await makeAt(startMs, 12);
      const first = await listWallets(reading(), {}, { limit: 5 });
      const cursor = first.nextCursor as string;
      await database.orm.em
        .fork()
        .getKysely<Tables>()
        .updateTable('wallets')
        .set({ archived_at_ms: 1 })
        .where('id', '=', cursor)
        .execute();
      const second = await listWallets(reading(), {}, { limit: 5, cursor });
      const ids = [...first.wallets, ...second.wallets].map(({ id }) => id);
      expect(new Set(ids).size).toBe(10);
    });

    test('pages of another app cannot be read with its cursor', async () => {
      const [wallet] = await makeAt(startMs, 1);
      const stranger = listWallets(reading('globex'), {}, { cursor: (wallet as WalletRow).id });
      await expect(stranger).rejects.toMatchObject({ code: 'invalid_data' });
    });
  });
});
