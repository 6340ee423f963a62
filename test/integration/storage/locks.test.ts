import { expect, test } from 'vitest';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { lockName, lockNames, tryLockName } from '../../../src/storage/locks.ts';
import { openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { unsignedProof } from '../../support/unsigned-proof.ts';

// `hashtextextended` of PostgreSQL is Bob Jenkins' lookup3 (public domain, 2006): both of its steps are invertible, so
// twelve bytes give a text any hash.

const ARBITRARY = 0x9e3779b9 + 3923095;
const rotate = (value: number, by: number) => (value << by) | (value >>> (32 - by));

/** The steps of `mix` with the rotation of each. */
const mixes = [4, 6, 8, 16, 19, 4].map((by, at) => ({
  by,
  word: at % 3,
  last: (at + 2) % 3,
  next: (at + 1) % 3,
}));
/** The steps of `final`: the word, the one that it is combined with, the rotation. */
const finals = [
  [2, 1, 14],
  [0, 2, 11],
  [1, 0, 25],
  [2, 1, 16],
  [0, 2, 4],
  [1, 0, 14],
  [2, 1, 24],
] as const;

function mix(state: Int32Array): void {
  for (const { word, last, next, by } of mixes) {
    state[word]! -= state[last]!;
    state[word]! ^= rotate(state[last]!, by);
    state[last]! += state[next]!;
  }
}

function unmix(state: Int32Array): void {
  for (const { word, last, next, by } of mixes.toReversed()) {
    state[last]! -= state[next]!;
    state[word]! ^= rotate(state[last]!, by);
    state[word]! += state[last]!;
  }
}

function unfinal(state: Int32Array): void {
  for (const [word, other, by] of finals.toReversed()) {
    state[word]! += rotate(state[other]!, by);
    state[word]! ^= state[other]!;
  }
}

/** A text that begins with `start`, whose length is a multiple of 12, and has this hash: 12 printable characters more. */
function collide(start: string, hash: bigint): string {
  const bytes = Buffer.from(start);
  const length = bytes.length + 12;
  const before = new Int32Array(3).fill(ARBITRARY + length);
  for (let at = 0; at < bytes.length; at += 12) {
    for (let word = 0; word < 3; word += 1) before[word]! += bytes.readInt32LE(at + 4 * word);
    mix(before);
  }
  const block = Buffer.alloc(12);
  for (let free = 0; ; free += 1) {
    const state = Int32Array.of(
      free,
      Number(BigInt.asIntN(32, hash >> 32n)),
      Number(BigInt.asIntN(32, hash)),
    );
    unfinal(state);
    unmix(state);
    for (let word = 0; word < 3; word += 1) block.writeInt32LE((state[word]! - before[word]!) | 0, 4 * word);
    if (block.every((byte) => byte > 0x20 && byte < 0x7f)) return start + block.toString();
  }
}

async function hashOf({ orm }: TestDatabase, text: string): Promise<bigint> {
  const [row] = await orm.em
    .fork()
    .execute<{ hash: string }[]>('select hashtextextended(?, 0)::text as hash', [text]);
  return BigInt(row!.hash);
}

/** What an earlier version does. */
async function tryEarlier({ orm }: TestDatabase, name: string): Promise<boolean> {
  const [row] = await orm.em
    .fork()
    .execute<{ locked: boolean }[]>('select pg_try_advisory_xact_lock(hashtextextended(?, 0)) as locked', [
      name,
    ]);
  return row!.locked;
}

type Em = Parameters<Parameters<TestDatabase['orm']['em']['transactional']>[0]>[0];
/** Runs something while a transaction that has run `first` is open. */
const during = <T>({ orm }: TestDatabase, first: (em: Em) => Promise<unknown>, then: () => Promise<T>) =>
  orm.em.fork().transactional(async (em) => {
    await first(em);
    return await then();
  });
const tryInOther = ({ orm }: TestDatabase, kind: Parameters<typeof tryLockName>[1], name: string) =>
  orm.em.fork().transactional((em) => tryLockName(em, kind, name));

test('the idempotency key of one app does not block that of another, whatever its hash', async () => {
  await using database = await openTestDatabase('postgres');
  const use = (appId: string, key: string) => ({
    ...{ appId, key, fingerprint: '', nowMs: 0 },
    proof: { ...unsignedProof, canonicalPayloads: () => [] },
  });
  // Ids have 25 characters, the line feed is one, and the beginning of the key fills the third block.
  const [a, b] = [`c${'a'.repeat(24)}`, `c${'b'.repeat(24)}`];
  const hash = await hashOf(database, `${b}\norder-1`);
  const crafted = collide(`${a}\n${'-'.repeat(10)}`, hash);
  expect(await hashOf(database, crafted)).toBe(hash);
  const key = crafted.slice(a.length + 1);
  const [first, second] = [idempotencyKeys(), idempotencyKeys()];
  await during(
    database,
    (em) => first.begin(em, use(a, key)),
    async () => {
      const others = database.orm.em.fork();
      expect(await others.transactional((em) => second.begin(em, use(b, 'order-1')))).toBeUndefined();
      // The same key of the same app is refused, also by another process.
      await expect(others.transactional((em) => second.begin(em, use(a, key)))).rejects.toThrow(
        'still in progress',
      );
    },
  );
});

test('nothing of an app blocks the locks of the server', async () => {
  await using database = await openTestDatabase('postgres');
  const crafted = collide('-'.repeat(36), await hashOf(database, 'audit log'));
  expect(await hashOf(database, crafted)).toBe(await hashOf(database, 'audit log'));
  const lock = (em: Em) => lockName(em, 'idempotency', crafted);
  expect(await during(database, lock, () => tryInOther(database, 'audit log', 'audit log'))).toBe(true);
  // The same name of another kind is another name.
  expect(await during(database, lock, () => tryInOther(database, 'audit log', crafted))).toBe(true);
  expect(await during(database, lock, () => tryInOther(database, 'idempotency', crafted))).toBe(false);
});

test('while a server of an earlier version is registered, both exclude each other', async () => {
  await using database = await openTestDatabase('postgres');
  const em = database.orm.em.fork();
  const lock = (within: Em) => lockName(within, 'nonces', 'one');
  const lockBoth = (within: Em) => lockNames(within, 'nonces', ['two', 'one', 'two']);
  const lockEarlier = (within: Em) =>
    within.execute('select pg_advisory_xact_lock(hashtextextended(?, 0))', ['one']);
  expect(await during(database, lock, () => tryEarlier(database, 'one'))).toBe(true);

  await em.execute("insert into server_processes (id, beats, started_at_ms) values ('earlier', 0, 0)");
  expect(await during(database, lock, () => tryEarlier(database, 'one'))).toBe(false);
  expect(await during(database, lockBoth, () => tryEarlier(database, 'one'))).toBe(false);
  expect(await during(database, lockBoth, () => tryInOther(database, 'nonces', 'two'))).toBe(false);
  expect(await during(database, lockEarlier, () => tryInOther(database, 'nonces', 'one'))).toBe(false);
  expect(await during(database, lockEarlier, () => tryInOther(database, 'nonces', 'two'))).toBe(true);

  await em.execute("delete from server_processes where id = 'earlier'");
  expect(await during(database, lockEarlier, () => tryInOther(database, 'nonces', 'one'))).toBe(true);
});
