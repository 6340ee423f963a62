import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

/** CHOICE: the state of only the 20 forks that changed most recently is kept. */
const MAX_FILES = 20;
/** Larger results are not stored but fetched again. */
const MAX_KEPT_CHARACTERS = 1_000_000;

/** A node's results of calls, by a string that identifies the call. */
interface Answers {
  find(key: string): unknown;
  keep(key: string, answer: unknown): unknown;
  close(): void;
}

/** Opens the file with those results of a node that never change. Creates the folder if necessary. */
export function openAnswers(folder: string, name: string): Answers {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = `${name}.sqlite`;
  const others = readdirSync(folder).filter((each) => each.endsWith('.sqlite') && each !== file);
  const byAge = others
    .map((other) => ({ path: join(folder, other), ms: statSync(join(folder, other)).mtimeMs }))
    .sort((one, other) => other.ms - one.ms);
  for (const { path } of byAge.slice(MAX_FILES - 1)) {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
  }
  const database = new Sqlite(join(folder, file));
  database.pragma('journal_mode = wal');
  database.exec('create table if not exists answers (key text primary key, answer text not null)');
  const select = database.prepare<[string], { answer: string }>('select answer from answers where key = ?');
  const insert = database.prepare('insert or replace into answers values (?, ?)');
  return {
    find(key) {
      const row = select.get(key);
      return row && JSON.parse(row.answer);
    },
    keep(key, answer) {
      const text = JSON.stringify(answer);
      if (answer !== null && text.length <= MAX_KEPT_CHARACTERS) insert.run(key, text);
      return answer;
    },
    close: () => void database.close(),
  };
}
