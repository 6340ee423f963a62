import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AppEntity } from '../../../src/domain/access/apps/app.entity.ts';
import { OrganizationEntity } from '../../../src/domain/access/organizations/organization.entity.ts';
import { WebhookSecretEntity } from '../../../src/domain/access/webhooks/webhook.entity.ts';
import { inSavepoint } from '../../../src/domain/savepoint.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { createNotes } from '../../../src/ports/operation-context.ts';
import { isUniqueViolation } from '../../../src/storage/database-errors.ts';
import { findPage } from '../../../src/storage/find-page.ts';
import { lockForUpdate } from '../../../src/storage/locks.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { planOf, recordStatements } from '../plans.ts';

const hostile = [
  "it's",
  '?',
  '??',
  '\\?',
  '$1',
  ':name',
  'back\\slash',
  '"; drop table organizations; --',
  '日本 👩‍🚀',
];

const organization = {
  id: 'one',
  appId: 'acme',
  displayName: 'One',
  defaultKeyQuorumId: 'quorum',
  createdAtMs: 1_767_225_600_123,
  updatedAtMs: 1_767_225_600_123,
};

describe.each(databaseKinds)('the entity manager on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const fork = () => database.orm.em.fork();
  const plant = async (...rows: Partial<typeof organization>[]) => {
    const em = fork();
    for (const row of rows) em.create(OrganizationEntity, { ...organization, ...row });
    await em.flush();
  };
  const nameOf = async (id: string) => (await fork().findOneOrFail(OrganizationEntity, { id })).displayName;

  test('writes and reads any text, times as numbers, bytes as bytes', async () => {
    await plant(...hostile.map((displayName, index) => ({ id: `id-${index}`, displayName })));
    for (const [index, displayName] of hostile.entries()) {
      const found = await fork().find(OrganizationEntity, { displayName });
      expect(found).toEqual([{ ...organization, id: `id-${index}`, displayName }]);
    }
    const secret = {
      ...{ id: 's', endpointId: 'e', appId: 'acme', masterKeyId: 'k' },
      ...{ sealedSecret: Buffer.from([0, 1, 39, 255]), wrappedDataKey: Buffer.alloc(0) },
      ...{ createdAtMs: 2 ** 50, expiresAtMs: null },
    };
    const em = fork();
    em.create(WebhookSecretEntity, secret);
    await em.flush();
    const read = await fork().findOneOrFail(WebhookSecretEntity, { id: 's' });
    expect({ ...read }).toEqual(secret);
  });

  test('changes many entities in one flush, each with its own columns', async () => {
    await plant({ id: 'a' }, { id: 'b' }, { id: 'c' });
    const em = fork();
    const [a, b, c] = await em.find(OrganizationEntity, {}, { orderBy: { id: 'asc' } });
    a!.displayName = hostile[0]!;
    a!.updatedAtMs = 5;
    b!.displayName = hostile[3]!;
    c!.updatedAtMs = 7;
    await em.flush();
    const rows = await fork().find(OrganizationEntity, {}, { orderBy: { id: 'asc' } });
    expect(rows.map(({ displayName, updatedAtMs }) => [displayName, updatedAtMs])).toEqual([
      [hostile[0], 5],
      [hostile[3], organization.updatedAtMs],
      ['One', 7],
    ]);
  });

  test('sends values as parameters: the same work uses the same statements', async () => {
    const statementsOf = async (id: string) => {
      const em = fork();
      await em.begin();
      const statements = await recordStatements(em.getTransactionContext() as Kysely<Tables>, async () => {
        const made = em.create(OrganizationEntity, { ...organization, id, displayName: `secret of ${id}` });
        await em.flush();
        made.displayName = `changed secret of ${id}`;
        await em.flush();
        await em.findOne(OrganizationEntity, { id, appId: 'acme' }, lockForUpdate);
        await em.remove(made).flush();
      });
      await em.commit();
      return statements;
    };
    const [one, two] = [await statementsOf('one'), await statementsOf('two')];
    expect(one.length).toBe(4);
    expect(one.map(({ sql }) => sql)).toEqual(two.map(({ sql }) => sql));
    expect(one.map(({ sql }) => sql).join()).not.toMatch(/secret|one|acme/);
    expect(one.flatMap(({ parameters }) => parameters)).toContain('changed secret of one');
  });

  test('distinguishes a duplicate row from other errors', async () => {
    await plant({});
    const error = await plant({}).catch((reason: unknown) => reason);
    expect(isUniqueViolation(error)).toBe(true);
  });

  test('sees the changes of another transaction after locking the row', async () => {
    await plant({});
    const em = fork();
    const read = await em.findOneOrFail(OrganizationEntity, { id: 'one' });
    const other = fork();
    (await other.findOneOrFail(OrganizationEntity, { id: 'one' })).displayName = 'Renamed';
    await other.flush();
    expect(read.displayName).toBe('One');
    await em.begin();
    const locked = await em.findOneOrFail(OrganizationEntity, { id: 'one', appId: 'acme' }, lockForUpdate);
    expect(locked.displayName).toBe('Renamed');
    await em.commit();
  });

  test('can read while a migration adds a column', async () => {
    await plant({});
    expect(await nameOf('one')).toBe('One');
    await fork().execute('alter table organizations add column later text');
    try {
      expect(await nameOf('one')).toBe('One');
    } finally {
      await fork().execute('alter table organizations drop column later');
    }
  });

  test('an entity that is only read is not written, whatever its columns contain', async () => {
    const em = fork();
    em.create(AppEntity, {
      id: 'acme',
      name: 'Acme',
      secretHashes: [],
      settings: { a: [1] },
      createdAtMs: 1,
    });
    em.create(WebhookSecretEntity, {
      ...{ id: 's', endpointId: 'e', appId: 'acme', masterKeyId: 'k', createdAtMs: 1, expiresAtMs: null },
      ...{ sealedSecret: Buffer.from([1]), wrappedDataKey: Buffer.from([2]) },
    });
    await em.flush();
    const reading = fork();
    await reading.begin();
    const app = await reading.findOneOrFail(AppEntity, { id: 'acme' });
    await reading.findOneOrFail(WebhookSecretEntity, { id: 's' });
    const flushed = (work: () => unknown) =>
      recordStatements(reading.getTransactionContext() as Kysely<Tables>, async () => {
        work();
        await reading.flush();
      });
    expect(await flushed(() => undefined)).toEqual([]);
    const change = await flushed(() => Object.assign(app.settings, { b: 2 }));
    expect(change.map(({ parameters }) => parameters)).toEqual([['{"a":[1],"b":2}', 'acme']]);
    await reading.rollback();
  });

  test('makes a second lock of the row wait for the first', async () => {
    await plant({ displayName: '' });
    const rename = (suffix: string) =>
      fork().transactional(async (em) => {
        const locked = await em.findOneOrFail(OrganizationEntity, { id: 'one' }, lockForUpdate);
        await new Promise((resolve) => setTimeout(resolve, 20));
        locked.displayName += suffix;
      });
    await Promise.all(['a', 'b', 'c', 'd'].map(rename));
    expect([...(await nameOf('one'))].sort().join('')).toBe('abcd');
  });

  test('a rolled back savepoint leaves neither a row nor a changed entity', async () => {
    await plant({}, { id: 'two' });
    const em = fork();
    await em.begin();
    const outer = await em.findOneOrFail(OrganizationEntity, { id: 'one' });
    outer.updatedAtMs = 9;
    const undone = inSavepoint({ em, notes: createNotes() }, async (inner) => {
      const same = await inner.findOneOrFail(OrganizationEntity, { id: 'one' });
      expect(same.updatedAtMs).toBe(9);
      same.displayName = 'undone';
      inner.create(OrganizationEntity, { ...organization, id: 'undone' });
      await inner.flush();
      throw new Error('refused');
    });
    await expect(undone).rejects.toThrow('refused');
    const kept = await inSavepoint({ em, notes: createNotes() }, async (inner) => {
      (await inner.findOneOrFail(OrganizationEntity, { id: 'two' })).displayName = 'kept';
      return 'kept';
    });
    await em.commit();
    expect(outer.displayName).toBe('One');
    expect([kept, await nameOf('one'), await nameOf('two')]).toEqual(['kept', 'One', 'kept']);
    expect(await fork().count(OrganizationEntity)).toBe(2);
  });

  test('pages by the index, newest first, with equal times by id', async () => {
    const em = fork();
    const count = 500;
    for (let index = 0; index < count; index += 1) {
      const id = `id-${String(index).padStart(4, '0')}`;
      em.create(OrganizationEntity, { ...organization, id, createdAtMs: Math.floor(index / 3) });
    }
    await em.flush();
    await fork().execute('analyze');
    const found: string[] = [];
    let after: Parameters<typeof findPage<typeof organization>>[3]['after'];
    for (;;) {
      const reading: SqlEntityManager = fork();
      const { page, nextCursor } = await findPage(
        reading,
        OrganizationEntity,
        { appId: 'acme' },
        { after, limit: 99 },
      );
      found.push(...page.map(({ id }) => id));
      after = page.at(-1);
      expect(nextCursor).toBe(found.length === count ? null : after?.id);
      if (nextCursor === null) break;
    }
    expect(found).toEqual([...found].sort().reverse());
    expect(found.length).toBe(count);
    const last = { ...organization, id: 'id-0300', createdAtMs: 100 };
    const [plan] = await planOf(database, () =>
      findPage(fork(), OrganizationEntity, { appId: 'acme' }, { after: last, limit: 5 }),
    );
    expect(plan).toMatch(/organizations_by_age/);
    expect(plan).toMatch(/created_at_ms/);
    expect(plan).not.toMatch(/sort|temp b-tree|seq scan|scan organizations/i);
  });
});
