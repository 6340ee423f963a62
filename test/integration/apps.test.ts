import { hash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  createApp,
  createAppDirectory,
  rotateAppSecret,
  updateApp,
} from '../../src/domain/access/apps/app.ts';
import { findApp, listApps } from '../../src/domain/access/apps/find-app.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { resetDatabase } from '../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { inTransaction, startMs } from './contexts.ts';

const digest = (secret: string) => hash('sha256', secret);

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  /** Digests of the secrets that authentication accepts at a given time. */
  async function acceptedAt(nowMs: number, appId: string): Promise<string[] | undefined> {
    const found = await createAppDirectory(database.orm, { now: () => nowMs }).find(appId);
    return found?.secretHashes.map((bytes) => Buffer.from(bytes).toString('hex'));
  }

  test('an app is created with a secret of which only the digest is stored', async () => {
    const { app, secret } = await inTransaction(database, (context) => createApp(context, { name: 'Acme' }));
    expect(app).toEqual({
      id: expect.stringMatching(/^c[0-9a-z]{24}$/),
      name: 'Acme',
      secretHashes: [{ hash: digest(secret), createdAtMs: startMs, expiresAtMs: null }],
      settings: {},
      createdAtMs: startMs,
    });
    expect(secret).toMatch(/^service_app_secret_[\w-]{43}$/);
    expect(await acceptedAt(startMs, app.id)).toEqual([digest(secret)]);
    const rows = await database.orm.em.fork().getKysely<Tables>().selectFrom('apps').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(await findApp(database.orm.em.fork(), app.id)).toEqual(app);
  });

  test('an id is unique', async () => {
    await inTransaction(database, (context) => createApp(context, { id: 'one' }));
    const again = inTransaction(database, (context) => createApp(context, { id: 'one' }));
    await expect(again).rejects.toMatchObject({ code: 'resource_already_exists' });
  });

  test('an old secret is accepted until the overlap ends, but not longer than before', async () => {
    const first = await inTransaction(database, (context) => createApp(context, { id: 'one' }));
    const rotate = (nowMs: number, overlapMs: number) =>
      inTransaction(database, (context) => rotateAppSecret(context, 'one', { overlapMs }), { nowMs });
    const second = await rotate(startMs, 1000);
    const both = [digest(second.secret), digest(first.secret)];
    expect(await acceptedAt(startMs + 999, 'one')).toEqual(both);
    expect(await acceptedAt(startMs + 1000, 'one')).toEqual([digest(second.secret)]);

    const third = await rotate(startMs + 500, 10_000);
    expect(await acceptedAt(startMs + 999, 'one')).toHaveLength(3);
    expect(await acceptedAt(startMs + 1000, 'one')).toEqual(
      [third, second].map(({ secret }) => digest(secret)),
    );
    const last = await rotate(startMs + 600, 0);
    expect(await acceptedAt(startMs + 600, 'one')).toEqual([digest(last.secret)]);
    expect((await findApp(database.orm.em.fork(), 'one')).secretHashes).toHaveLength(1);
  });

  test('settings are replaced by name, and null removes one', async () => {
    await inTransaction(database, (context) =>
      createApp(context, { id: 'one', settings: { kept: 1, changed: 1, gone: 1 } }),
    );
    const change = { name: 'Renamed', settings: { changed: { deep: true }, gone: null } };
    const app = await inTransaction(database, (context) => updateApp(context, 'one', change));
    expect(app).toMatchObject({ name: 'Renamed', settings: { kept: 1, changed: { deep: true } } });
    expect(app.settings).not.toHaveProperty('gone');
    expect(await findApp(database.orm.em.fork(), 'one')).toEqual(app);
  });

  test('apps are listed oldest first, and an unknown one is not found', async () => {
    for (const [id, nowMs] of [
      ['young', 3],
      ['old', 1],
      ['middle', 2],
    ] as const) {
      await inTransaction(database, (context) => createApp(context, { id }), { nowMs });
    }
    expect((await listApps(database.orm.em.fork())).map(({ id }) => id)).toEqual(['old', 'middle', 'young']);
    await expect(findApp(database.orm.em.fork(), 'none')).rejects.toMatchObject({ code: 'not_found' });
    expect(await acceptedAt(startMs, 'none')).toBeUndefined();
  });
});
