import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Tables } from '../../src/domain/tables.ts';
import {
  findWallet,
  findWalletByAddress,
  listWallets,
} from '../../src/domain/wallets/wallets/find-wallet.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { contextOf } from './contexts.ts';
import { planOf, plantManyWallets } from './plans.ts';

describe.each(databaseKinds)('%s finds wallets by index', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
    await plantManyWallets(database);
  });
  afterAll(() => database.close());

  const reading = () => contextOf(database.orm.em.fork() as SqlEntityManager, 'acme');
  const page = { limit: 50 };

  // `few`: so few rows that sorting them is negligible.
  const lookUps: { name: string; index: string; few?: true; run: () => Promise<unknown> }[] = [
    {
      name: 'by id',
      index: kind === 'sqlite' ? 'sqlite_autoindex_wallets_1' : 'wallets_pkey',
      run: () => findWallet(reading(), 'wallet-77'),
    },
    {
      name: 'by external id',
      index: 'wallets_external_id',
      run: () => findWallet(reading(), 'ext_wal_external-7'),
    },
    {
      name: 'by address',
      few: true,
      index: 'wallets_by_address',
      run: () => findWalletByAddress(reading(), 'address-77'),
    },
    { name: 'the newest', index: 'wallets_by_age_live', run: () => listWallets(reading(), {}, page) },
    {
      name: 'the next page',
      index: kind === 'sqlite' ? 'wallets_by_age' : 'wallets_by_age_live',
      run: () => listWallets(reading(), {}, { ...page, cursor: 'wallet-500' }),
    },
    {
      name: 'with the archived',
      index: 'wallets_by_age',
      run: () => listWallets(reading(), { includeArchived: true }, page),
    },
    {
      name: 'of a rare chain type',
      index: 'wallets_by_chain_type',
      run: () => listWallets(reading(), { chainType: 'near' }, page),
    },
    {
      name: 'of an owner',
      index: 'wallets_by_owner',
      run: () => listWallets(reading(), { userId: 'user-4' }, page),
    },
    {
      name: 'of an entity',
      index: 'wallets_by_entity',
      run: () => listWallets(reading(), { entityId: 'entity-1' }, page),
    },
    {
      name: 'with an address',
      few: true,
      index: 'wallets_by_address',
      run: () => listWallets(reading(), { address: 'address-77' }, page),
    },
    {
      name: 'with an external id',
      few: true,
      index: 'wallets_external_id',
      run: () => listWallets(reading(), { externalId: 'external-7' }, page),
    },
    { name: 'under a policy', index: 'wallets_by_policy', run: () => selectWhere('wallets', 'policy_id') },
    {
      name: 'of a signer',
      index: 'wallet_signers_by_signer',
      run: () => selectWhere('wallet_signers', 'signer_id'),
    },
    {
      name: 'of a signer’s policy',
      index: 'wallet_signers_by_policy',
      run: () => selectWhere('wallet_signers', 'override_policy_id'),
    },
    { name: 'owned by a quorum', index: 'wallets_by_owner', run: () => selectWhere('wallets', 'owner_id') },
  ];

  const selectWhere = (table: string, column: string) =>
    sql`select 1 from ${sql.table(table)} where ${sql.ref(column)} = ${'x'}`.execute(
      database.orm.em.fork().getKysely<Tables>(),
    );

  test.each(lookUps)('$name: $index', async ({ index, few, run }) => {
    const plans = await planOf(database, run);
    const plan = plans.at(-1) ?? '';
    expect(plan).toContain(index);
    expect(plan, 'no other rows are read').not.toMatch(/Seq Scan|SCAN/);
    if (!few) expect(plan, 'the index has the order').not.toMatch(/Sort|TEMP B-TREE/);
  });
});
