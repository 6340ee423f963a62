import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admitWallet, listOrganizations } from '../../src/domain/access/organizations/organization.ts';
import {
  findUser,
  findUserByAccount,
  findUserByUsername,
  requireUsers,
} from '../../src/domain/access/user-records/find-user.ts';
import { listAllowlistEntries } from '../../src/domain/wallets/allowlist/allowlist.ts';
import { listUsers, searchUsers } from '../../src/domain/wallets/users/list-users.ts';
import { removeSearchTerms } from '../../src/domain/wallets/users/store-accounts.ts';
import type { Organization, User } from '../../src/generated/schemas.ts';
import type { OperationContext } from '../../src/ports/operation-context.ts';
import { databaseKinds } from '../support/databases.ts';
import { openOperations, type TestOperations } from '../support/run-operations.ts';
import { explain, recordStatements } from './plans.ts';

const owner_address = '0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A';

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  let users: User[];
  let organization: Organization;

  beforeAll(async () => {
    operations = await openOperations(kind);
    users = [];
    for (let index = 0; index < 150; index += 1) {
      const { body } = await operations.run('createUser', {
        body: {
          linked_accounts: [
            { type: 'email', address: `user-${index}@example.com` },
            { type: 'phone', number: `+1 202 555 ${String(index).padStart(4, '0')}` },
            { type: 'farcaster', fid: index + 1, owner_address, username: `name-${index}` },
          ],
          wallets: index === 0 ? [{ chain_type: 'ethereum', create_smart_wallet: true }] : [],
        },
      });
      users.push(body as User);
    }
    const quorum = await operations.run('createKeyQuorum', { body: { user_ids: [users[0]!.id] } });
    const made = await operations.run('createOrganization', {
      body: { display_name: 'Acme', default_key_quorum_id: (quorum.body as { id: string }).id },
    });
    organization = made.body as Organization;
  });
  afterAll(() => operations[Symbol.asyncDispose]());

  /** How the database would answer each query of `work`. */
  async function plansOf(work: (context: OperationContext) => Promise<unknown>) {
    const queries = await operations.database.orm.em
      .fork()
      .transactional((em) =>
        recordStatements((em as OperationContext['em']).getKysely(), () =>
          work(operations.context(em as OperationContext['em'])),
        ),
      );
    const plans: string[][] = [];
    for (const query of queries) plans.push(await explain(operations.database.orm.em.fork(), kind, query));
    return plans;
  }

  const subjects = [
    { type: 'email', subject: 'user-7@example.com' },
    { type: 'phone', subject: '+1 202 555 0007' },
    { type: 'farcaster', subject: '8' },
  ];
  const last = () => users[49]!.id;
  type Work = (context: OperationContext) => Promise<unknown>;
  const reads: { name: string; queries: number; work: Work }[] = [
    { name: 'a user by id', queries: 2, work: (context) => findUser(context, users[7]!.id) },
    ...subjects.map((key) => ({
      name: `a user by ${key.type}`,
      queries: 2,
      work: (context: OperationContext) => findUserByAccount(context, key),
    })),
    {
      name: 'a user by a public name',
      queries: 2,
      work: (context) => findUserByUsername(context, { type: 'farcaster', username: 'NAME-7' }),
    },
    { name: 'a page of 100 users', queries: 2, work: (context) => listUsers(context, {}) },
    { name: 'the next page', queries: 3, work: (context) => listUsers(context, { cursor: last() }) },
    {
      name: 'a whole search term',
      queries: 3,
      work: (context) => searchUsers(context, { searchTerm: 'user-7@example.com' }),
    },
    {
      name: 'the beginning of a search term',
      queries: 4,
      work: (context) => searchUsers(context, { searchTerm: 'name-' }),
    },
    {
      name: 'any of several identifiers',
      queries: 6,
      work: (context) =>
        searchUsers(context, {
          emails: ['user-7@example.com', 'x'],
          phoneNumbers: ['+1 202 555 0008'],
          walletAddresses: [owner_address],
        }),
    },
    { name: 'users named in a body', queries: 1, work: (context) => requireUsers(context, [last()], '') },
    { name: 'the terms of an account', queries: 1, work: (context) => removeSearchTerms(context, ['x']) },
    { name: 'a page of organizations', queries: 1, work: (context) => listOrganizations(context, {}) },
    {
      name: 'the place of a wallet in an organization',
      queries: 2,
      work: (context) => admitWallet(context, { id: organization.id, type: 'organization' }),
    },
    { name: 'the allowlist', queries: 1, work: (context) => listAllowlistEntries(context) },
  ];

  test.each(reads)('$name runs $queries queries, each with an index', async ({ queries, work }) => {
    const plans = await plansOf(work);
    expect(plans).toHaveLength(queries);
    for (const plan of plans) {
      expect(plan.length, plan.join('\n')).toBeGreaterThan(0);
      expect(
        plan.filter((line) => /Seq Scan|^SCAN (?!.*USING)/.test(line)),
        plan.join('\n'),
      ).toEqual([]);
    }
  });

  // Rows read in index order are not sorted, so the cost does not grow with the users of the app.
  test.each([
    { name: 'a page of users', at: 0, work: (context: OperationContext) => listUsers(context, {}) },
    {
      name: 'the next page',
      at: 1,
      work: (context: OperationContext) => listUsers(context, { cursor: last() }),
    },
    {
      name: 'a whole search term',
      at: 0,
      work: (context: OperationContext) => searchUsers(context, { searchTerm: 'user-7@example.com' }),
    },
    {
      name: 'the beginning of a search term',
      at: 1,
      work: (context: OperationContext) => searchUsers(context, { searchTerm: 'name-' }),
    },
    {
      name: 'a public name',
      at: 0,
      work: (context: OperationContext) =>
        findUserByUsername(context, { type: 'farcaster', username: 'name-7' }),
    },
  ])('$name is read in index order, without sorting', async ({ at, work }) => {
    const plan = (await plansOf(work))[at] ?? [];
    expect(plan.length).toBeGreaterThan(0);
    expect(
      plan.filter((line) => /\bSort\b|TEMP B-TREE/.test(line)),
      plan.join('\n'),
    ).toEqual([]);
  });

  test('the search reads only its index', async () => {
    const [plan = []] = await plansOf((context) =>
      searchUsers(context, { searchTerm: 'user-7@example.com' }),
    );
    expect(plan.join('\n')).toMatch(/COVERING INDEX|Index Only Scan/);
  });
});
