import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportFrom } from '../../../src/admin/audit/export-log.ts';
import { verifierFor } from '../../../src/admin/audit/log-folder.ts';
import { proveConsistency, proveRecords } from '../../../src/admin/audit/prove-record.ts';
import { verifyLog, verifyProof } from '../../../src/admin/audit/verify-log.ts';
import { ensureAuditKeys } from '../../../src/domain/base/audit/audit-keys.ts';
import { writeRecord } from '../../../src/domain/base/audit/audit-log.ts';
import { sequenceAll, signCheckpoint } from '../../../src/domain/base/audit/audit-tree.ts';
import { readBundle, writeBundle } from '../../../src/engine/crypto/tlog/tiles.ts';
import { createNotes, type UnitWork } from '../../../src/ports/operation-context.ts';
import { figureSize, isLong, noteFigure } from '../../figures/figure.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { naiveConsistency, naiveRoot } from './naive-merkle.ts';

const RECORDS = isLong ? 10_000 : 600;
const MUTATIONS = figureSize({ short: 25, long: 2_000 });
const timeout = isLong ? 3_600_000 : 60_000;

describe.each(databaseKinds)('an export from %s', (kind) => {
  let world: TestOperations;
  let base: string;
  let log: string;
  let key: string;
  let earlier: string;
  const fork = () => world.database.orm.em.fork();
  const inUnit = <T>(work: UnitWork<T>): Promise<T> =>
    fork().transactional((em) => work(em as SqlEntityManager, createNotes()));
  const grow = async (begin: number, end: number) => {
    await inUnit(async (em, notes) => {
      for (let number = begin; number < end; number += 1) {
        const by = { kind: 'job', job: 'test' } as const;
        const requestId = `request-${Math.floor(number / 2)}`;
        const record = { atMs: number, appId: null, by, operation: 'op', ids: {}, requestId };
        await writeRecord({ em, notes }, { ...record, decision: 'allow' });
      }
    });
    await inUnit((em) => sequenceAll(em, 1));
    await signCheckpoint({ keyStore: world.services.keyStore, em: fork(), inUnit });
  };

  beforeAll(async () => {
    world = await openOperations(kind);
    const { keyStore, entropy } = world.services;
    await ensureAuditKeys({ em: fork(), keyStore, entropy, inUnit });
    base = mkdtempSync(join(tmpdir(), 'audit-'));
    log = join(base, 'log');
    await grow(0, 300);
    key = (await exportFrom(fork(), log)).verifier_key;
    earlier = readFileSync(join(log, 'checkpoint'), 'utf8');
    await grow(300, RECORDS);
    const exported = await exportFrom(fork(), log);
    expect(exported).toMatchObject({ size: RECORDS, from: 300 });
  });
  afterAll(async () => {
    rmSync(base, { recursive: true, force: true });
    await world[Symbol.asyncDispose]();
  });

  const filesIn = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile())
      .map((each) => join(each.parentPath, each.name).slice(folder.length + 1))
      .sort();
  const entriesOf = (folder: string): Uint8Array[] =>
    filesIn(folder)
      .filter((name) => name.startsWith('tile/entries/'))
      .flatMap((name) => readBundle(readFileSync(join(folder, name)))!);
  const changed = async (change: (folder: string) => void, options = {}) => {
    const folder = mkdtempSync(join(base, 'changed-'));
    try {
      cpSync(log, folder, { recursive: true });
      change(folder);
      return await verifyLog(folder, { key, ...options });
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  /** The faults of the log with another file, which is put back. */
  const withFile = async (name: string, change: (bytes: Buffer) => Uint8Array) => {
    const bytes = readFileSync(join(log, name));
    writeFileSync(join(log, name), change(Buffer.from(bytes)));
    try {
      return await verifyLog(log, { key });
    } finally {
      writeFileSync(join(log, name), bytes);
    }
  };

  test('is verified, also against an earlier checkpoint, and its root is that of RFC 6962', async () => {
    const root = naiveRoot(entriesOf(log)).toString('base64');
    expect(await verifyLog(log, { key })).toEqual({ size: RECORDS, root, faults: [] });
    expect(await verifyLog(log, { witnessed: earlier })).toEqual({ size: RECORDS, root, faults: [] });
    if (isLong) return;
    expect(filesIn(log)).toEqual([
      ...['checkpoint', 'log.vkey', 'tile/0/000', 'tile/0/001', 'tile/0/002.p/88', 'tile/1/000.p/2'],
      ...['tile/entries/000', 'tile/entries/001', 'tile/entries/002.p/88'],
    ]);
  });

  // The files are the same, whichever database they are from.
  const testFiles = test.runIf(kind === 'sqlite');

  testFiles('reveals every changed byte of every file', { timeout }, async () => {
    const names = filesIn(log).filter((name) => name !== 'log.vkey');
    const anyByte = fc.record({
      name: fc.constantFrom(...names),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      flip: fc.integer({ min: 1, max: 255 }),
    });
    await fc.assert(
      fc.asyncProperty(anyByte, async ({ name, at, flip }) => {
        const { faults } = await withFile(name, (bytes) => {
          bytes[Math.floor(at * bytes.length)]! ^= flip;
          return bytes;
        });
        expect(faults).not.toEqual([]);
      }),
      { numRuns: MUTATIONS },
    );
    noteFigure({ records: RECORDS, changedBytes: MUTATIONS });
  });

  testFiles(
    'reveals records that were dropped, swapped or inserted, and says where',
    { timeout },
    async () => {
      const bundles = filesIn(log).filter((name) => name.startsWith('tile/entries/'));
      const anyChange = fc.record({
        name: fc.constantFrom(...bundles),
        places: fc.uniqueArray(fc.nat(255), { minLength: 2, maxLength: 2 }),
        kind: fc.constantFrom('drop', 'swap', 'insert', 'replace'),
      });
      await fc.assert(
        fc.asyncProperty(anyChange, async ({ name, places, kind }) => {
          const entries = readBundle(readFileSync(join(log, name)))!;
          // The newest bundle is not full.
          const [at, to] = places.map((place) => place % entries.length) as [number, number];
          fc.pre(at !== to);
          const isLast = at === entries.length - 1;
          const first =
            Number(name.split('/')[2]!.slice(0, 3)) * 256 + (kind === 'swap' ? Math.min(at, to) : at);
          const other = Buffer.from('{"forged":true}');
          if (kind === 'drop') entries.splice(at, 1);
          if (kind === 'insert') entries.splice(at, 0, other);
          if (kind === 'replace') entries[at] = other;
          if (kind === 'swap') [entries[at], entries[to]] = [entries[to]!, entries[at]!];
          const { faults } = await withFile(name, () => writeBundle(entries));
          // Nothing takes the place of the last record of a bundle; their number differs.
          const expected =
            kind === 'drop' && isLast
              ? `to ${first}: expected ${entries.length + 1} records, got ${entries.length}`
              : `record ${first}: `;
          expect(faults.join('\n')).toContain(expected);
        }),
        { numRuns: MUTATIONS },
      );
      noteFigure({ records: RECORDS, changedRecords: MUTATIONS });
      const { faults } = await changed((folder) => rmSync(join(folder, bundles[0]!)));
      expect(faults).toEqual(['records 0 to 255: the file is missing']);
    },
  );

  test('that ends before what a witness has seen was truncated', async () => {
    const witnessed = readFileSync(join(log, 'checkpoint'), 'utf8');
    const { faults } = await changed((folder) => writeFileSync(join(folder, 'checkpoint'), earlier), {
      witnessed,
    });
    expect(faults).toContain(`a witness has seen ${RECORDS} records, the log has 300: it was truncated`);
    const forged = witnessed.replace(`\n${RECORDS}\n`, `\n${RECORDS - 1}\n`);
    expect((await verifyLog(log, { witnessed: forged })).faults).toHaveLength(1);
  });

  test('is only continued by the same log', async () => {
    const copy = join(base, 'copy');
    cpSync(log, copy, { recursive: true });
    const tampered = fork();
    await tampered.begin();
    const [{ hashes } = { hashes: Buffer.alloc(0) }] = await tampered.execute<{ hashes: Buffer }[]>(
      'select hashes from audit_tiles where level = 1 and tile_index = 0',
    );
    const other = Buffer.from(hashes);
    other[0]! ^= 1;
    await tampered.execute('update audit_tiles set hashes = ? where level = 1 and tile_index = 0', [other]);
    await expect(exportFrom(tampered, copy)).rejects.toThrow(
      /first \d+ records in the database are not those/,
    );
    await tampered.rollback();
    writeFileSync(join(copy, 'checkpoint'), 'nonsense');
    await expect(exportFrom(fork(), copy)).rejects.toThrow(
      'the folder has a checkpoint of a different log; export to a new folder',
    );
    expect(existsSync(join(copy, 'checkpoint.new'))).toBe(false);
  });

  test('proves records by index and request, and its growth, to those who have nothing but the key', async () => {
    const verifier = verifierFor(log, key);
    const proved = await proveRecords(log, 'request-7');
    expect(proved.map(({ index }) => index)).toEqual([14, 15]);
    const [proof, record] = [join(base, 'one.tlog-proof'), join(base, 'one.json')];
    for (const each of [...proved, ...(await proveRecords(log, String(RECORDS - 1)))]) {
      writeFileSync(proof, each.proof);
      writeFileSync(record, `${each.record}\n`);
      expect(verifyProof(verifier, { proofFile: proof, recordFile: record })).toBeUndefined();
      writeFileSync(record, each.record.replace('"op"', '"po"'));
      expect(verifyProof(verifier, { proofFile: proof, recordFile: record })).toBe(
        'the record is not the one that was logged',
      );
    }
    await expect(proveRecords(log, String(RECORDS))).rejects.toThrow('the log has no record');
    const { hashes } = await proveConsistency(log, earlier);
    expect(hashes).toEqual(naiveConsistency(300, entriesOf(log)).map((hash) => hash.toString('base64')));
  });
});
