import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { figureSize, isLong, noteFigure } from '../../figures/figure.ts';
import { randomOf } from '../../simulation/random.ts';
import { serveCustos, temporaryFolder } from '../../support/run-custos.ts';
import { openOperations } from '../../support/run-operations.ts';

// What a disk holds after a power cut: the database as it was when its log began, and a log that ends anywhere, or goes
// on with noise. The judge is a digest of every row of every table, taken after each transaction.
const cuts = figureSize({ short: 80, long: 20_000 });
const seed = process.env.TEST_SEED ?? '1';
const transactions = 40;

const WAL_HEADER = 32;
const FRAME_HEADER = 24;

/** A moment at which a transaction was acknowledged. */
interface Acknowledged {
  /** The length of the log. */
  readonly bytes: number;
  /** Of the whole content. */
  readonly digest: string;
}

let folder: string;
let main: Buffer;
let wal: Buffer;
let pageSize: number;
let acknowledged: Acknowledged[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'custos-cuts-'));
  const file = join(folder, 'database.sqlite');
  await using operations = await openOperations('sqlite', { file });
  const reader = new Sqlite(file);
  // The log is empty from here on, and holds all that follows.
  reader.pragma('wal_checkpoint(TRUNCATE)');
  reader.pragma('wal_autocheckpoint = 0');
  main = readFileSync(file);
  pageSize = reader.pragma('page_size', { simple: true }) as number;
  acknowledged = [{ bytes: 0, digest: digestOf(reader) }];
  const walletIds: string[] = [];
  for (let number = 0; number < transactions; number += 1) {
    const isChange = number % 3 === 2;
    const { status, body } = isChange
      ? await operations.run('archiveWallet', { path: { wallet_id: walletIds.pop()! } })
      : await operations.run('createWallet', {
          body: { chain_type: 'ethereum', external_id: `wallet-${number}` },
          idempotencyKey: `key ${number}`,
        });
    expect(status).toBe(200);
    if (!isChange) walletIds.push((body as Wallet).id);
    acknowledged.push({ bytes: statSync(`${file}-wal`).size, digest: digestOf(reader) });
  }
  wal = readFileSync(`${file}-wal`);
  expect(readFileSync(file).equals(main), 'nothing has moved into the database yet').toBe(true);
  reader.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Of every row of every table. */
function digestOf(handle: Sqlite.Database): string {
  const names = handle
    .prepare<[], { name: string }>("select name from sqlite_schema where type = 'table' order by name")
    .all();
  const digest = createHash('sha256');
  for (const { name } of names) {
    digest.update(name);
    for (const row of handle.prepare<[], unknown[]>(`select * from "${name}"`).raw().iterate())
      digest.update(JSON.stringify(row));
  }
  return digest.digest('hex');
}

/** What must be there when the log is whole up to this length. */
const expectedAt = (bytes: number): string => acknowledged.findLast((each) => each.bytes <= bytes)!.digest;

/** Opens what a disk holds. Result: the digest of its content. */
function recover(database: Buffer, log: Buffer): string {
  const file = join(folder, 'cut.sqlite');
  writeFileSync(file, database);
  writeFileSync(`${file}-wal`, log);
  rmSync(`${file}-shm`, { force: true });
  const handle = new Sqlite(file);
  try {
    expect(handle.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(handle.pragma('foreign_key_check')).toEqual([]);
    return digestOf(handle);
  } finally {
    handle.close();
  }
}

test(`${cuts} power cuts leave what was acknowledged before, and nothing else`, {
  timeout: 3_600_000,
}, () => {
  const random = randomOf(`power cut ${seed}`);
  const frameSize = FRAME_HEADER + pageSize;
  const frames = (wal.length - WAL_HEADER) / frameSize;
  expect(Number.isInteger(frames), 'the log consists of whole frames').toBe(true);
  const noise = (length: number): Buffer => {
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length; at += 1) bytes[at] = random.below(256);
    return bytes;
  };
  /** Each edge of a frame first, then anywhere. */
  const placeOf = (cut: number): number =>
    cut <= frames ? WAL_HEADER + cut * frameSize : random.below(wal.length + 1);
  const counts = { truncated: 0, scrambled: 0, flipped: 0, torn: 0 };
  for (let cut = 0; cut < cuts; cut += 1) {
    const place = placeOf(cut);
    const damage =
      cut <= frames ? 'truncated' : random.pick(['truncated', 'scrambled', 'flipped', 'torn'] as const);
    counts[damage] += 1;
    const label = `seed ${seed}, cut ${cut}: ${damage} at ${place} of ${wal.length}`;
    if (damage === 'torn') {
      expect(recover(torn(random), wal), label).toBe(acknowledged.at(-1)!.digest);
      continue;
    }
    let log = wal.subarray(0, place);
    if (damage === 'scrambled') {
      // What was never synced may be anything, of any length.
      log = Buffer.concat([log, noise(random.below(Math.min(2 * frameSize, wal.length - place) + 1))]);
    } else if (damage === 'flipped') {
      log = Buffer.from(wal);
      const at = Math.min(place, wal.length - 1);
      log[at] = log[at]! ^ (1 << random.below(8));
      expect(recover(main, log), label).toBe(expectedAt(at));
      continue;
    }
    // Noise may begin with the bytes that were there.
    const same = sharedPrefix(log);
    expect(recover(main, log), label).toBe(expectedAt(same));
  }
  noteFigure({ cuts, seed, frames, transactions, ...counts });
});

const sharedPrefix = (log: Buffer): number => {
  let at = 0;
  while (at < log.length && at < wal.length && log[at] === wal[at]) at += 1;
  return at;
};

/** The database during a checkpoint: some of the pages of the log have been copied into it, some of them half. */
function torn(random: ReturnType<typeof randomOf>): Buffer {
  const frameSize = FRAME_HEADER + pageSize;
  const newest = new Map<number, Buffer>();
  for (let at = WAL_HEADER; at < wal.length; at += frameSize)
    newest.set(wal.readUInt32BE(at), wal.subarray(at + FRAME_HEADER, at + frameSize));
  const pages = Math.max(main.length / pageSize, ...newest.keys());
  const database = Buffer.alloc(pages * pageSize);
  main.copy(database);
  for (const [number, content] of newest) {
    if (!random.chance(0.5)) continue;
    const written = random.chance(0.3) ? random.below(pageSize) : pageSize;
    content.copy(database, (number - 1) * pageSize, 0, written);
  }
  return database;
}

const canTrace = isLong && spawnSync('strace', ['-V']).status === 0;

test.runIf(canTrace)('each commit is synced before its answer', { timeout: 120_000 }, async () => {
  const data = temporaryFolder();
  const trace = join(folder, 'trace');
  await using custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
  const strace = execFileSync('sh', [
    '-c',
    `strace -f -q -e trace=fsync,fdatasync -o '${trace}' -p ${custos.ready.pid} >/dev/null 2>&1 & echo $!`,
  ]);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const syncs = (): number =>
    readFileSync(trace, 'utf8')
      .split('\n')
      .filter((line) => / = 0$/.test(line)).length;
  const writes = 50;
  for (let number = 0; number < writes; number += 1) {
    const before = syncs();
    const body = { chain_type: 'ethereum', external_id: hash('sha256', `${number}`).slice(0, 20) };
    expect((await custos.call('POST', '/v1/wallets', body)).status).toBe(200);
    expect(syncs()).toBeGreaterThan(before);
  }
  noteFigure({ writes, syncs: syncs() });
  process.kill(Number(strace.toString().trim()));
});
