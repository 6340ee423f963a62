import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportFrom } from '../../../src/admin/audit/export-log.ts';
import { proveRecords } from '../../../src/admin/audit/prove-record.ts';
import { trimTo } from '../../../src/admin/audit/trim-log.ts';
import { verifyLog } from '../../../src/admin/audit/verify-log.ts';
import { ensureAuditKeys } from '../../../src/domain/base/audit/audit-keys.ts';
import { partitionedRecords, writeRecord } from '../../../src/domain/base/audit/audit-log.ts';
import { sequenceAll, signCheckpoint } from '../../../src/domain/base/audit/audit-tree.ts';
import { createNotes, type UnitWork } from '../../../src/ports/operation-context.ts';
import { extendPartitions, partitionsOf } from '../../../src/storage/schema/partitions.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

describe.each(databaseKinds)('the log on %s', (kind) => {
  let world: TestOperations;
  let folder: string;
  const fork = () => world.database.orm.em.fork();
  const inUnit = <T>(work: UnitWork<T>): Promise<T> =>
    fork().transactional((em) => work(em as SqlEntityManager, createNotes()));
  /** Records with the times 0, 1, 2 and so on. */
  const grow = async (begin: number, end: number) => {
    await inUnit(async (em, notes) => {
      for (let atMs = begin; atMs < end; atMs += 1) {
        const by = { kind: 'job', job: 'test' } as const;
        await writeRecord(
          { em, notes },
          { atMs, appId: null, by, operation: 'op', ids: {}, decision: 'allow' },
        );
      }
    });
    await sequence();
  };
  const sequence = async () => {
    await inUnit((em) => sequenceAll(em, 1));
    await signCheckpoint({ keyStore: world.services.keyStore, em: fork(), inUnit });
  };
  const stored = async (): Promise<number[]> => {
    const rows = await fork().execute<{ leaf_index: string }[]>(
      'select leaf_index from audit_records order by leaf_index',
    );
    return rows.map(({ leaf_index }) => Number(leaf_index));
  };

  beforeAll(async () => {
    world = await openOperations(kind);
    const { keyStore, entropy } = world.services;
    await ensureAuditKeys({ em: fork(), keyStore, entropy, inUnit });
    folder = mkdtempSync(join(tmpdir(), 'trim-'));
    await grow(0, 700);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await world[Symbol.asyncDispose]();
  });

  test('loses whole bundles of old records after they were exported, and goes on', async () => {
    expect(await trimTo(world.database, folder, { beforeMs: 600, nowMs: 900 })).toEqual({
      size: 700,
      kept_from: 512,
    });
    expect((await stored())[0]).toBe(512);
    expect(await verifyLog(folder)).toMatchObject({ size: 700, faults: [] });
    await sequence();
    await grow(701, 1000);
    const exported = await exportFrom(fork(), folder);
    expect(exported).toMatchObject({ size: 1000, from: 700 });
    expect(await verifyLog(folder)).toMatchObject({ size: 1000, faults: [] });
    const [first] = await proveRecords(folder, '0');
    expect(JSON.parse(first!.record)).toMatchObject({ at_ms: 0 });
    const [trim] = await proveRecords(folder, '700');
    expect(JSON.parse(trim!.record)).toEqual({
      ...{ at_ms: 900, decision: 'allow', operation: 'trimAuditLog', version: 1 },
      by: { kind: 'operator', origin: 'command_line' },
      ids: { kept_from: '512' },
    });
  });

  test('is not exported in part: without the export before, trimmed records are missed', async () => {
    const other = mkdtempSync(join(folder, 'other-'));
    await expect(exportFrom(fork(), other)).rejects.toThrow(/the database has 0 of the records 0 to 255/);
    rmSync(other, { recursive: true });
  });

  test('is not trimmed when the export was damaged', async () => {
    const before = await stored();
    const bundle = join(folder, 'tile/entries/000');
    const bytes = readFileSync(bundle);
    writeFileSync(bundle, Buffer.concat([bytes.subarray(0, 10), Buffer.from('x'), bytes.subarray(11)]));
    await expect(trimTo(world.database, folder, { beforeMs: 2000, nowMs: 2000 })).rejects.toThrow(
      'the export is not the log, nothing was deleted: record 0: it is not the one that was logged',
    );
    writeFileSync(bundle, bytes);
    expect(await stored()).toEqual(before);
  });

  test('does not export a record that was changed in the database', async () => {
    const before = readdirSync(folder, { recursive: true }).length;
    const tampered = fork();
    await tampered.begin();
    await tampered.execute("update audit_records set entry = '{}' where leaf_index = 800");
    await expect(exportFrom(tampered, folder)).rejects.toThrow(
      'record 800 in the database is not the one that was logged',
    );
    await tampered.rollback();
    expect(readdirSync(folder, { recursive: true })).toHaveLength(before);
    expect(await verifyLog(folder)).toMatchObject({ size: 1000, faults: [] });
  });

  test.runIf(kind === 'postgres')('drops whole partitions', async () => {
    const database = world.database;
    // As if a partition was full.
    await fork().execute('alter table audit_records detach partition audit_records_p0');
    await fork().execute(
      "alter table audit_records attach partition audit_records_p0 for values from (minvalue) to ('1024')",
    );
    await sequence();
    await grow(1000, 1100);
    await inUnit((em) => extendPartitions(em, partitionedRecords));
    await grow(1100, 1500);
    const [first, ...rest] = await partitionsOf(fork(), 'audit_records');
    expect([first?.to, rest.length]).toEqual([1024, 1]);
    // While a query uses the partition, its records are deleted one by one.
    const query = fork();
    await query.begin();
    await query.execute('lock table audit_records in access share mode');
    await trimTo(database, folder, { beforeMs: 1100, nowMs: 1500 });
    await query.commit();
    expect((await partitionsOf(fork(), 'audit_records'))[0]?.name).toBe(first?.name);
    expect((await stored())[0]).toBe(1024);
    await trimTo(database, folder, { beforeMs: 1400, nowMs: 1500 });
    expect((await partitionsOf(fork(), 'audit_records')).map(({ name }) => name)).toEqual(
      rest.map(({ name }) => name),
    );
    expect((await stored())[0]).toBe(1280);
    expect(await verifyLog(folder)).toMatchObject({ size: 1500, faults: [] });
  });
});
