import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureAuditKeys, getVerifier } from '../../../src/domain/base/audit/audit-keys.ts';
import { writeRecord } from '../../../src/domain/base/audit/audit-log.ts';
import {
  dropOldCheckpoints,
  getSignedCheckpoint,
  type SeenLog,
  sequenceAll,
  sequenceRecords,
  signCheckpoint,
} from '../../../src/domain/base/audit/audit-tree.ts';
import { openCheckpoint } from '../../../src/engine/crypto/tlog/checkpoint.ts';
import { createNotes, type UnitWork } from '../../../src/ports/operation-context.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { naiveRoot } from './naive-merkle.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

describe.each(databaseKinds)('on %s', (kind) => {
  let world: TestOperations;
  beforeEach(async () => {
    world = await openOperations(kind);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const fork = () => world.database.orm.em.fork();
  const inUnit = <T>(work: UnitWork<T>): Promise<T> =>
    fork().transactional((em) => work(em as SqlEntityManager, createNotes()));
  const write = (em: SqlEntityManager, number: number) =>
    writeRecord(
      { em, notes: createNotes() },
      {
        ...{ atMs: number, appId: null, by: { kind: 'job', job: 'test' }, operation: `number ${number}` },
        ...{ ids: {}, decision: 'allow' },
      },
    );
  const log = async (): Promise<string[]> => {
    const rows = await fork().execute<{ leaf_index: number | string; entry: string }[]>(
      'select leaf_index, entry from audit_records order by leaf_index',
    );
    expect(rows.map(({ leaf_index }) => Number(leaf_index))).toEqual(rows.map((_, at) => at));
    return rows.map(({ entry }) => entry);
  };
  const operationsIn = (entries: string[]): string[] =>
    entries.map((entry) => (JSON.parse(entry) as { operation: string }).operation);

  test('every committed record gets one place, whatever the order of commits; signed roots are those of RFC 6962', async () => {
    const { services } = world;
    const context = { em: fork(), keyStore: services.keyStore, entropy: services.entropy, inUnit };
    await ensureAuditKeys(context);
    await ensureAuditKeys(context);
    const verifier = await getVerifier(fork());
    // A transaction that begins early and commits late, on PostgreSQL with an earlier id than others.
    const late = fork();
    await late.begin();
    if (kind === 'postgres') await write(late, 0);
    for (let number = 1; number <= 300; number += 1) await inUnit((em) => write(em, number));
    await expect(
      inUnit(async (em) => {
        await write(em, 999);
        throw new Error('refused');
      }),
    ).rejects.toThrow('refused');
    expect(await inUnit((em) => sequenceRecords(em, 1))).toBe(300);
    const first = await log();
    if (kind === 'sqlite') await write(late, 0);
    await late.commit();
    expect(await inUnit((em) => sequenceRecords(em, 2))).toBe(1);
    expect(await inUnit((em) => sequenceRecords(em, 3))).toBe(0);
    const entries = await log();
    expect(entries.slice(0, 300)).toEqual(first);
    expect(operationsIn(entries)).toEqual([
      ...Array.from({ length: 300 }, (_, at) => `number ${at + 1}`),
      'number 0',
    ]);

    expect(await getSignedCheckpoint(fork())).toBeUndefined();
    const seen = await signCheckpoint({ keyStore: services.keyStore, em: fork(), inUnit });
    expect(seen).toMatchObject({ size: 301 });
    expect(await signCheckpoint({ keyStore: services.keyStore, em: fork(), inUnit }, seen)).toEqual(seen);
    const checkpoint = openCheckpoint((await getSignedCheckpoint(fork()))!, verifier!);
    expect(checkpoint).toEqual({
      origin: verifier!.name,
      size: 301,
      root: naiveRoot(entries.map((entry) => Buffer.from(entry))),
    });
    await inUnit((em) => write(em, 301));
    await inUnit((em) => sequenceRecords(em, 4));
    expect(await inUnit((em) => dropOldCheckpoints(em, 4 + 8 * DAY_MS))).toBe(2);
    expect(await getSignedCheckpoint(fork())).toBeUndefined();
  });

  test('two processes that place records at the same moment place each once', async () => {
    for (let number = 1; number <= 40; number += 1) await inUnit((em) => write(em, number));
    const placed = await Promise.all([
      inUnit((em) => sequenceRecords(em, 1)),
      inUnit((em) => sequenceAll(em, 1)),
      inUnit((em) => sequenceRecords(em, 1)),
      inUnit((em) => sequenceAll(em, 1)),
    ]);
    expect(placed.filter((count) => count === 40).length).toBeLessThanOrEqual(1);
    expect(operationsIn(await log())).toEqual(Array.from({ length: 40 }, (_, at) => `number ${at + 1}`));
  });

  test('a log that was rewritten under a running server is not signed', async () => {
    const { services } = world;
    const context = { em: fork(), keyStore: services.keyStore, entropy: services.entropy, inUnit };
    await ensureAuditKeys(context);
    const sign = (seen?: SeenLog) =>
      signCheckpoint({ keyStore: services.keyStore, em: fork(), inUnit }, seen);
    const grow = async (begin: number, end: number) => {
      await inUnit(async (em) => {
        for (let number = begin; number < end; number += 1) await write(em, number);
      });
      await inUnit((em) => sequenceAll(em, 1));
    };
    await grow(0, 300);
    const seen = await sign();
    await grow(300, 310);
    const later = await sign(seen);
    expect(later).toMatchObject({ size: 310 });
    // Everything is written again, with one other record.
    for (const table of ['audit_records', 'audit_tiles', 'audit_checkpoints']) {
      await fork().execute(`delete from ${table}`);
    }
    await grow(1, 321);
    await expect(sign(later)).rejects.toThrow('the first 310 records of the audit log were changed');
    expect(await getSignedCheckpoint(fork())).toBeUndefined();
    await fork().execute('delete from audit_checkpoints where size > 300');
    await expect(sign(later)).rejects.toThrow('the first 310 records of the audit log were changed');
  });

  test('a record that would be too long for an export is not written', async () => {
    const ids = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`id_${at}`, 'x'.repeat(700)]));
    await expect(
      inUnit((em, notes) =>
        writeRecord(
          { em, notes },
          {
            ...{
              atMs: 1,
              appId: null,
              by: { kind: 'job', job: 'test' },
              operation: 'long',
              ids,
              decision: 'allow',
            },
          },
        ),
      ),
    ).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('a record that cannot be written fails what it records', async () => {
    await fork().execute('drop table audit_pending');
    const change = inUnit(async (em) => {
      await em.execute("update apps set name = 'changed'");
      await write(em, 1);
    });
    await expect(change).rejects.toMatchObject({ code: 'unavailable', status: 503 });
    expect(await fork().execute("select id from apps where name = 'changed'")).toEqual([]);
  });

  test.runIf(kind === 'postgres').each([
    ['alone', 1],
    ['after other statements', 2],
  ])('a record that a trigger drops fails what it records, written %s', async (_, statements) => {
    await fork().execute(
      `create function drop_row() returns trigger language plpgsql as 'begin return null; end'`,
    );
    await fork().execute(
      'create trigger drop_rows before insert on audit_pending for each row execute function drop_row()',
    );
    const record = {
      ...{ atMs: 1, appId: null, by: { kind: 'job', job: 'test' } as const, operation: 'test', ids: {} },
      decision: 'allow',
    } as const;
    const change = inUnit(async (em, notes) => {
      if (statements > 1) await em.execute("update apps set name = 'changed'");
      await writeRecord({ em, notes }, record, { isLast: true });
    });
    await expect(change).rejects.toMatchObject({ code: 'unavailable', status: 503 });
    expect(await fork().execute("select id from apps where name = 'changed'")).toEqual([]);
  });
});
