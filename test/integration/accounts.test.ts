import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  createAccount,
  findAccount,
  getAccountBalance,
  listAccounts,
  updateAccount,
} from '../../src/domain/wallets/accounts/account.ts';
import { createWallet } from '../../src/domain/wallets/wallets/create-wallet.ts';
import type { Chains, EvmChain } from '../../src/ports/chains.ts';
import { resetDatabase } from '../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { contextOf, inTransaction, startMs } from './contexts.ts';

describe.each(databaseKinds)('accounts on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const reading = (appId = 'acme') => contextOf(database.orm.em.fork(), appId);
  const make = (names: readonly string[]) =>
    inTransaction(database, (context) =>
      createAccount(context, {
        display_name: names.join(' '),
        wallets_configuration: names.map(() => ({ chain_type: 'ethereum' as const })),
      }),
    );

  test('an account is read back with its wallets in their order', async () => {
    const made = await make(['one', 'two', 'three']);
    const found = await findAccount(reading(), made.account.id);
    expect(found.account).toEqual(made.account);
    expect(found.wallets.map(({ id }) => id)).toEqual(made.wallets.map(({ id }) => id));
    await expect(findAccount(reading('other'), made.account.id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('concurrent requests never add more than five wallets to an account', async () => {
    const { account } = await make(['one', 'two']);
    const two = {
      wallets_configuration: [{ chain_type: 'solana' as const }, { chain_type: 'solana' as const }],
    };
    const ends = await Promise.allSettled(
      Array.from({ length: 4 }, () =>
        inTransaction(database, (context) => updateAccount(context, account.id, two)),
      ),
    );
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const { wallets } = await findAccount(reading(), account.id);
    expect(wallets.map(({ chain_type }) => chain_type)).toEqual(['ethereum', 'ethereum', 'solana', 'solana']);
  });

  test('a refused request changes nothing', async () => {
    const { account } = await make(['one', 'two', 'three', 'four', 'five']);
    const one = { display_name: 'x', wallets_configuration: [{ chain_type: 'solana' as const }] };
    await expect(
      inTransaction(database, (context) => updateAccount(context, account.id, one)),
    ).rejects.toMatchObject({ code: 'invalid_data' });
    expect((await findAccount(reading(), account.id)).account).toEqual(account);
  });

  test('pages and searches are the same on every database', async () => {
    for (const [index, name] of ['Ärzte', 'Treasury', 'treasury_2'].entries()) {
      await inTransaction(
        database,
        (context) =>
          createAccount(context, { display_name: name, wallets_configuration: [{ chain_type: 'ethereum' }] }),
        { nowMs: startMs + index },
      );
    }
    const names = async (options: Parameters<typeof listAccounts>[1]) =>
      (await listAccounts(reading(), options)).accounts.map(({ account }) => account.displayName);
    expect(await names({ search: 'TREASURY' })).toEqual(['treasury_2', 'Treasury']);
    expect(await names({ search: 'y_' })).toEqual(['treasury_2']);
    expect(await names({ search: 'ä' })).toEqual(['Ärzte']);
    const { accounts, nextCursor } = await listAccounts(reading(), { limit: 2 });
    expect(accounts.map(({ account }) => account.displayName)).toEqual(['treasury_2', 'Treasury']);
    expect(await names({ cursor: nextCursor ?? undefined })).toEqual(['Ärzte']);
  });

  test('an unreachable chain fails the request, and only a few chains are queried at once', async () => {
    const { account } = await make(['one']);
    let [asked, atOnce, most] = [0, 0, 0];
    const answer = async (tokenAddresses: readonly unknown[]): Promise<bigint[]> => {
      asked += 1;
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise(setImmediate);
      atOnce -= 1;
      return tokenAddresses.map(() => 1n);
    };
    const chainsWithout = (lost: string | undefined): Chains => ({
      find: (caip2) =>
        ({
          kind: 'evm',
          caip2,
          balances: (_: string, tokens: readonly unknown[]) =>
            caip2 === lost ? Promise.reject(new Error('connection refused')) : answer(tokens),
        }) as unknown as EvmChain,
    });
    const ask = (lost?: string) =>
      getAccountBalance({ ...reading(), chains: chainsWithout(lost) }, account.id, { isTestnet: false });
    expect((await ask()).assets_by_chain).not.toEqual([]);
    expect(asked).toBeGreaterThan(10);
    expect(most).toBe(8);
    await expect(ask('eip155:8453')).rejects.toMatchObject({ code: 'unavailable', status: 503 });
  });

  test('an archived wallet stays in its account and cannot be added to another', async () => {
    const wallet = await inTransaction(database, (context) =>
      createWallet(context, { chain_type: 'ethereum' }),
    );
    const { account } = await inTransaction(database, (context) =>
      createAccount(context, { wallet_ids: [wallet.id] }),
    );
    await database.orm.em.fork().execute(`update wallets set archived_at_ms = 1 where id = '${wallet.id}'`);
    expect((await findAccount(reading(), account.id)).wallets.map(({ id }) => id)).toEqual([wallet.id]);
    await expect(
      inTransaction(database, (context) => createAccount(context, { wallet_ids: [wallet.id] })),
    ).rejects.toMatchObject({ code: 'invalid_data' });
  });
});
