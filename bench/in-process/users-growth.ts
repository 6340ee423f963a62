import { parseArgs } from 'node:util';
import { makeIds, systemEntropy } from '../../src/adapters/runtime.ts';
import {
  findUser,
  findUserByAccount,
  findUserByUsername,
} from '../../src/domain/access/user-records/find-user.ts';
import { entities } from '../../src/domain/tables.ts';
import { listUsers, searchUsers } from '../../src/domain/wallets/users/list-users.ts';
import { createUser } from '../../src/domain/wallets/users/user.ts';
import type { OperationContext } from '../../src/ports/operation-context.ts';
import { unitsOf } from '../../src/server/unit-of-work.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { seededUserId, seedUsers } from './seed-users.ts';
import { measureOperations, reportProgress } from './storage-rounds.ts';

// Our verbs on a database of 1,000 users and on a large one, alternating.

const APP = 'custossandboxapp000000000';
const NOW_MS = Date.UTC(2026, 0, 2);
const SMALL = 1000;
const PAGE = 100;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    users: { type: 'string', default: '100000' },
    small: { type: 'string', default: '' },
    large: { type: 'string', default: '' },
    kind: { type: 'string', default: 'sqlite' },
  },
});
const isPostgres = values.kind === 'postgres';
const at = isPostgres ? 8 : 1;

type Work = (context: OperationContext, index: number) => Promise<unknown>;
let made = 0;

/**
 * The operations and how often a round runs each. The look-ups use the two indexes that all fourteen look-ups share.
 */
const operations: Readonly<Record<string, { count: number; write?: true; work: Work }>> = {
  get: { count: 2000, work: (context, index) => findUser(context, seededUserId(index)) },
  'look-up by email': {
    count: 2000,
    work: (context, index) =>
      findUserByAccount(context, { type: 'email', subject: `user-${index}@example.com` }),
  },
  'look-up by custom id': {
    count: 2000,
    work: (context, index) => findUserByAccount(context, { type: 'custom_auth', subject: `user-${index}` }),
  },
  'look-up by name': {
    count: 2000,
    work: (context, index) =>
      findUserByUsername(context, { type: 'github_oauth', username: `user-${index}` }),
  },
  'search, whole text': {
    count: 1000,
    work: (context, index) => searchUsers(context, { searchTerm: `user-${index}@example.com` }),
  },
  // Every user of the large database matches, so this shows whether only one page is read.
  'search, beginning': { count: 100, work: (context) => searchUsers(context, { searchTerm: 'user-' }) },
  'first page of 100': { count: 400, work: (context) => listUsers(context, { limit: PAGE }) },
  'later page of 100': {
    count: 400,
    work: (context, index) =>
      listUsers(context, { limit: PAGE, cursor: seededUserId(Math.max(index, PAGE)) }),
  },
  create: {
    count: 300,
    write: true,
    work: (context) => {
      made += 1;
      return createUser(context, {
        linked_accounts: [
          { type: 'email', address: `made-${made}@example.com` },
          { type: 'custom_auth', custom_user_id: `made-${made}` },
        ],
      });
    },
  },
};

async function openSeeded(place: string, count: number): Promise<Database> {
  const database = await openDatabase(
    entities,
    isPostgres ? { kind: 'postgres', url: place, poolSize: at } : { kind: 'sqlite', file: place },
  );
  await seedUsers(database, {
    appId: APP,
    count,
    report: (seeded) => {
      if (seeded % 50_000 === 0) reportProgress(`seeded ${seeded} of ${count} users`);
    },
  });
  if (isPostgres) await database.orm.em.fork().execute('vacuum analyze');
  return database;
}

function runnerOn(database: Database, users: number) {
  const openUnit = unitsOf(database);
  const ids = makeIds(systemEntropy);
  return async (name: string, turn: number): Promise<void> => {
    const { work, write = false } = operations[name]!;
    const unit = await openUnit(write);
    const context = {
      ...{ em: unit.em, notes: unit.notes },
      app: { id: APP, name: '' },
      nowMs: NOW_MS + turn,
      ids,
      entropy: systemEntropy,
    } as unknown as OperationContext;
    const result = await work(context, (turn * 7919) % users);
    if (result === undefined) throw new Error(`${name} found nothing`);
    await unit.commit();
  };
}

const small = await openSeeded(values.small, SMALL);
const large = await openSeeded(values.large, Number(values.users));
const subjects = { small: runnerOn(small, SMALL), large: runnerOn(large, Number(values.users)) };
const alternating = Object.entries(operations).flatMap(([operation, { count }]) =>
  Object.entries(subjects).map(
    ([subject, run]) => [operation, subject, { count, run: (turn: number) => run(operation, turn) }] as const,
  ),
);
const measured = await measureOperations(Number(values.rounds), at, alternating);
await Promise.all([small.close(), large.close()]);
process.send?.(measured);
process.disconnect?.();
