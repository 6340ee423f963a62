import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { type ControlledTransaction, sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CommitSync } from '../../../src/storage/sqlite/commit-sync.ts';
import { type Notes, openNotes as openNotesIn } from './notes-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-commits-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openNotes = (options?: Parameters<typeof openNotesIn>[1]) =>
  openNotesIn(join(folder, 'notes.sqlite'), options);

type Opened = ReturnType<typeof openNotes>;

const diskFull = () => Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });

describe('transactions of one turn of the event loop', () => {
  test('transactions of one turn of the event loop are committed together, and acknowledged after that', async () => {
    const { write, commands, committed } = openNotes();
    const acknowledged: unknown[] = [];
    await Promise.all(['a', 'b', 'c'].map((id) => write(id).then(() => acknowledged.push(committed()))));
    expect(acknowledged).toEqual(Array(3).fill(['a', 'b', 'c']));
    expect(commands.filter((each) => each === 'commit')).toHaveLength(1);
  });

  test('transactions of one turn of the event loop of the next turn are committed separately', async () => {
    const { write, commands } = openNotes();
    await write('a');
    await nextTurn();
    await write('b');
    expect(commands).toEqual(['begin immediate', 'commit', 'begin immediate', 'commit']);
  });

  test('transactions of one turn of the event loop of a single statement are committed with the others', async () => {
    const { database, begin, run, write, commands, committed } = openNotes();
    const single = await begin();
    const insertion = database.insertInto('notes').values({ id: 'b' }).compile();
    await Promise.all([write('a'), run(single, insertion, { isLast: true }), write('c')]);
    expect(committed()).toEqual(['a', 'b', 'c']);
    expect(commands.filter((each) => each === 'commit')).toHaveLength(1);
    await single.commit().execute();
  });

  test('need no savepoint if they are committed with their only change', async () => {
    const { begin, insertLast, idsIn, write, commands, committed } = openNotes();
    const first = write('a');
    const second = await begin();
    expect(await idsIn(second)).toEqual(['a']);
    const last = insertLast(second, 'b');
    const third = await begin();
    expect(await idsIn(third)).toEqual(['a', 'b']);
    await Promise.all([first, last, insertLast(third, 'c')]);
    expect(committed()).toEqual(['a', 'b', 'c']);
    expect(commands).toEqual(['begin immediate', 'commit']);
  });

  test('transactions of one turn of the event loop are over with the statement with which they are committed', async () => {
    const { begin, insert, insertLast, committed } = openNotes();
    const transaction = await begin();
    await insert(transaction, 'a');
    await insertLast(transaction, 'b');
    expect(committed()).toEqual(['a', 'b']);
    await expect(insert(transaction, 'c')).rejects.toThrow('a statement follows the last statement');
    await transaction.rollback().execute();
    expect(committed()).toEqual(['a', 'b']);
  });

  test('see what those before them have written', async () => {
    const { begin, insert, idsIn } = openNotes();
    const first = await begin();
    await insert(first, 'a');
    const committing = first.commit().execute();
    const second = await begin();
    expect(await idsIn(second)).toEqual(['a']);
    await second.rollback().execute();
    await committing;
  });

  test('transactions of one turn of the event loop are committed after 64 without waiting for the end of the turn', async () => {
    const { write, commands } = openNotes();
    await Promise.all(Array.from({ length: 150 }, (_, index) => write(`note ${index}`)));
    expect(commands.filter((each) => each === 'commit')).toHaveLength(3);
  });

  test('wait for one that is open when the turn ends', async () => {
    const { begin, insert, write, committed } = openNotes();
    const first = write('a');
    const second = await begin();
    await insert(second, 'b');
    await nextTurn();
    await nextTurn();
    expect(committed()).toEqual([]);
    await second.commit().execute();
    expect(committed()).toEqual(['a', 'b']);
    await first;
  });
});

describe('transactions that end while the disk is busy', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout'] }));
  afterEach(() => vi.useRealTimers());

  /** Notes on a disk that is busy until it is freed. */
  function onBusyDisk() {
    const { promise, resolve } = Promise.withResolvers<void>();
    let isBusy = true;
    const sync: CommitSync = {
      flushed: async () => undefined,
      free: () => (isBusy ? promise : undefined),
      settled: () => undefined,
      close: async () => undefined,
    };
    const free = () => {
      isBusy = false;
      resolve();
    };
    return { ...openNotes({ sync }), free };
  }

  test('transactions that end while the disk is busy are committed together when it is free', async () => {
    const { write, commands, committed, free } = onBusyDisk();
    const first = write('a');
    await nextTurn();
    const second = write('b');
    await nextTurn();
    await nextTurn();
    expect(committed()).toEqual([]);
    free();
    await Promise.all([first, second]);
    expect(committed()).toEqual(['a', 'b']);
    expect(commands.filter((each) => each === 'commit')).toHaveLength(1);
  });

  test('transactions that end while the disk is busy are held for 5 ms at most', async () => {
    const { write, committed } = onBusyDisk();
    const written = write('a');
    await nextTurn();
    await nextTurn();
    vi.advanceTimersByTime(4);
    expect(committed()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(committed()).toEqual(['a']);
    await written;
  });

  test('wait for one that is open when it becomes free', async () => {
    const { begin, insert, write, committed, free } = onBusyDisk();
    const first = write('a');
    const second = await begin();
    await insert(second, 'b');
    await nextTurn();
    free();
    await nextTurn();
    expect(committed()).toEqual([]);
    await second.commit().execute();
    expect(committed()).toEqual(['a', 'b']);
    await first;
  });

  test('transactions that end while the disk is busy are found by the next read outside of a transaction', async () => {
    const { database, idsIn, write, committed } = onBusyDisk();
    const written = write('a');
    await nextTurn();
    await nextTurn();
    expect(await idsIn(database)).toEqual(['a']);
    expect(committed()).toEqual(['a']);
    await written;
  });
});

describe('a transaction that is rolled back', () => {
  test.each(['first', 'second', 'third'])(
    'as the %s one takes nothing of the others with it',
    async (which) => {
      const { begin, insert, write, committed } = openNotes();
      await Promise.all(
        ['first', 'second', 'third'].map(async (id) => {
          if (id !== which) return write(id);
          const transaction = await begin();
          await insert(transaction, id);
          await transaction.rollback().execute();
        }),
      );
      expect(committed()).toEqual(['first', 'second', 'third'].filter((id) => id !== which));
    },
  );

  test.each([
    ['alone', []],
    ['after others', ['b']],
  ])(
    'because its last statement fails, %s, takes nothing of the others with it',
    async (_, earlier: string[]) => {
      const { begin, insert, insertLast, write, committed } = openNotes();
      const first = write('a');
      const refused = await begin();
      for (const id of earlier) await insert(refused, id);
      await expect(insertLast(refused, 'a')).rejects.toThrow(/UNIQUE/);
      await refused.rollback().execute();
      await Promise.all([first, write('c')]);
      expect(committed()).toEqual(['a', 'c']);
    },
  );

  test('after a savepoint of its own was released takes nothing of the others with it', async () => {
    const { begin, insert, write, committed } = openNotes();
    const first = write('a');
    const refused = await begin();
    const nested = await refused.savepoint('part').execute();
    await insert(nested, 'b');
    await (await nested.releaseSavepoint('part').execute()).rollback().execute();
    await Promise.all([first, write('c')]);
    expect(committed()).toEqual(['a', 'c']);
  });

  test('a transaction that is rolled back ends when what it has read is committed', async () => {
    const { begin, idsIn, write, committed } = openNotes();
    const writing = write('a');
    const refused = await begin();
    expect(await idsIn(refused)).toEqual(['a']);
    await refused.rollback().execute();
    expect(committed()).toEqual(['a']);
    await writing;
  });

  test('while the turn ends lets the others be committed', async () => {
    const { begin, insert, write, committed } = openNotes();
    const first = write('a');
    const second = await begin();
    await insert(second, 'b');
    await nextTurn();
    await second.rollback().execute();
    await first;
    expect(committed()).toEqual(['a']);
  });
});

describe('a read outside of transactions', () => {
  test('a read outside of transactions finds what was committed in this turn', async () => {
    const { begin, insert, idsIn, database, committed } = openNotes();
    const transaction = await begin();
    await insert(transaction, 'a');
    const committing = transaction.commit().execute();
    expect(await idsIn(database)).toEqual(['a']);
    expect(committed()).toEqual(['a']);
    await committing;
  });

  test('a read outside of transactions finds nothing of what cannot be committed', async () => {
    const { begin, insert, idsIn, database } = openNotes({
      fault: (command) => {
        if (command === 'commit') throw diskFull();
      },
    });
    const transaction = await begin();
    await insert(transaction, 'a');
    const committing = transaction
      .commit()
      .execute()
      .catch((error: Error) => error.message);
    expect(await idsIn(database)).toEqual([]);
    expect(await committing).toMatch(/full/);
  });
});

describe('an error', () => {
  test('of the commit fails all that wait for it, and later ones succeed', async () => {
    let isFull = true;
    const { write, committed, handle } = openNotes({
      fault: (command) => {
        if (command === 'commit' && isFull) throw diskFull();
      },
    });
    const results = await Promise.allSettled(['a', 'b'].map(write));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(handle.inTransaction).toBe(false);
    isFull = false;
    await write('c');
    expect(committed()).toEqual(['c']);
  });

  test('of the commit and of the rollback after it keeps single changes out of the transaction', async () => {
    const { write, insert, database, committed } = openNotes({
      fault: (command) => {
        if (/^(commit|rollback)$/.test(command)) throw diskFull();
      },
    });
    await expect(write('a')).rejects.toThrow(/full/);
    await expect(insert(database, 'b')).rejects.toThrow('cannot be ended');
    expect(committed()).toEqual([]);
  });

  test('with which SQLite rolls back everything at a savepoint fails the others too', async () => {
    let isFull = false;
    const { handle, begin, insert, idsIn, write, committed } = openNotes({
      fault(command) {
        if (!isFull || !command.startsWith('savepoint')) return;
        handle.exec('rollback');
        throw diskFull();
      },
    });
    const first = write('a');
    const second = await begin();
    await idsIn(second);
    isFull = true;
    await expect(insert(second, 'b')).rejects.toThrow('full');
    isFull = false;
    await second.rollback().execute();
    await expect(first).rejects.toThrow('full');
    await write('c');
    expect(committed()).toEqual(['c']);
  });

  test('with which SQLite rolls back everything fails the others too, and nothing of the open one is kept', async () => {
    const { begin, insert, write, committed } = openNotes();
    const first = write('a').catch(() => 'failed');
    const second = await begin();
    await insert(second, 'b');
    await expect(sql`insert or rollback into notes values ('b')`.execute(second)).rejects.toThrow(/UNIQUE/);
    expect(await first).toBe('failed');
    await expect(insert(second, 'c')).rejects.toThrow('an error has ended the transaction');
    await expect(second.commit().execute()).rejects.toThrow('an error has ended the transaction');
    await write('d');
    expect(committed()).toEqual(['d']);
  });

  test.each(['release', 'rollback to'])(
    'an error of `%s` keeps nothing that was not committed',
    async (failing) => {
      let isFull = true;
      const { begin, insert, write, committed, handle } = openNotes({
        fault: (command) => {
          if (command.startsWith(failing) && isFull) throw diskFull();
        },
      });
      const first = write('a').catch(() => 'failed');
      const second = await begin();
      await insert(second, 'b');
      const ended = failing === 'release' ? second.commit() : second.rollback();
      await expect(ended.execute()).rejects.toThrow(/full/);
      expect(handle.inTransaction).toBe(false);
      isFull = false;
      await write('c');
      expect(await first).toBe('failed');
      expect(committed()).toEqual(['c']);
    },
  );
});

test('a handle that is closed in the middle of a transaction keeps what was committed before, and nothing of it', async () => {
  const { database, begin, insert, write, handle } = openNotes();
  await write('a');
  await nextTurn();
  const waiting = await begin();
  await insert(waiting, 'never acknowledged');
  void waiting.commit().execute();
  await insert(await begin(), 'b');
  await database.destroy();
  expect(handle.open).toBe(false);
  expect(openNotes().committed()).toEqual(['a']);
});

test.each([
  ['a transaction', ({ write }: Opened) => write('b')],
  ['a single change', ({ insert, database }: Opened) => insert(database, 'b')],
])(
  'another handle of this process does not wait with %s for a commit that is due at the end of its own turn',
  async (_, change) => {
    const { begin, insert, committed } = openNotes();
    const transaction = await begin();
    await insert(transaction, 'a');
    const committing = transaction.commit().execute();
    const other = openNotes();
    other.handle.pragma('busy_timeout = 100');
    await change(other);
    await committing;
    expect(committed()).toEqual(['a', 'b']);
  },
);

describe('any order of transactions and reads', () => {
  const kinds = ['write', 'write', 'read', 'turn', 'outside', 'commit', 'commit', 'last', 'fail', 'rollback'];
  const steps = fc.array(fc.constantFrom(...kinds), { maxLength: 40 });

  test('any order of transactions and reads: leaves what was acknowledged, and nothing that was not', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.infiniteStream(fc.integer({ min: 0, max: 9 })), async (order, dice) => {
        rmSync(folder, { recursive: true, force: true });
        folder = mkdtempSync(join(tmpdir(), 'custos-commits-'));
        const { database, begin, insert, insertLast, idsIn, committed } = openNotes({
          fault: (command) => {
            if (command === 'commit' && dice.next().value === 0) throw diskFull();
          },
        });
        const kept = new Set<string>();
        const endings: Promise<unknown>[] = [];
        let open: ControlledTransaction<Notes> | undefined;
        let written: string[] = [];
        const end = (done: Promise<unknown>): void => {
          const mine = written;
          endings.push(
            done.then(
              () => {
                for (const id of mine) kept.add(id);
                expect(committed()).toEqual(expect.arrayContaining(mine));
              },
              (error: Error) => expect(error.message).toMatch(/full/),
            ),
          );
        };
        for (const [index, step] of order.entries()) {
          if (step === 'turn') await nextTurn();
          else if (step === 'outside') {
            if (open === undefined) expect(await idsIn(database)).toEqual(committed());
          } else if (step === 'commit' || step === 'rollback') {
            if (open === undefined) continue;
            if (step === 'commit') end(open.commit().execute());
            else endings.push(open.rollback().execute());
            open = undefined;
          } else {
            if (open === undefined) [open, written] = [await begin(), []];
            if (step === 'last') {
              written.push(`note ${index}`);
              end(insertLast(open, `note ${index}`));
              open = undefined;
            } else if (step === 'fail') {
              const [id = 'none'] = await idsIn(open);
              if (id === 'none') continue;
              await expect(insertLast(open, id)).rejects.toThrow(/UNIQUE/);
              endings.push(open.rollback().execute());
              open = undefined;
            } else if (step === 'write') {
              await insert(open, `note ${index}`);
              written.push(`note ${index}`);
            } else expect(await idsIn(open)).toEqual(expect.arrayContaining(written));
          }
        }
        if (open !== undefined) end(open.commit().execute());
        await Promise.all(endings);
        expect(committed()).toEqual([...kept].sort());
        await database.destroy();
      }),
      { numRuns: 200 },
    );
  });
});
