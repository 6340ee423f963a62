import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { imageOf, makeDisk } from '../../simulation/disk.ts';

function newImage(): Buffer {
  const handle = new Sqlite(':memory:');
  handle.exec(
    'create table notes (id integer primary key autoincrement, text text); create table keys (id text primary key);' +
      "insert into notes (text) values ('once'); delete from notes",
  );
  return imageOf(handle);
}

const contentOf = (disk: ReturnType<typeof makeDisk>) => [
  disk.all('select * from notes'),
  disk.all('select * from keys'),
  disk.all('select * from sqlite_sequence'),
];

test('a simulation finds the disk as a new one, whatever the one before has left on it', () => {
  const image = newImage();
  const first = makeDisk(image, () => undefined);
  const fresh = contentOf(first);
  expect(fresh).toEqual([[], [], [{ name: 'notes', seq: 1 }]]);
  const handle = first.open({ isOver: false }, () => undefined);
  handle.exec("insert into notes (text) values ('a'), ('b')");
  handle.exec("insert into keys values ('a')");
  handle.exec('begin immediate');
  handle.exec("insert into keys values ('b')");
  first.close();
  const second = makeDisk(image, () => undefined);
  expect(second.isInTransaction).toBe(false);
  expect(contentOf(second)).toEqual(fresh);
  second.close();
});

test('an image with rows is refused, because they would be deleted', () => {
  const handle = new Sqlite(':memory:');
  handle.exec("create table keys (id text primary key); insert into keys values ('a');");
  expect(() => makeDisk(imageOf(handle), () => undefined)).toThrow('keys has rows');
});
