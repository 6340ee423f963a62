import Sqlite from 'better-sqlite3';
import { type CompiledQuery, type ControlledTransaction, Kysely } from 'kysely';
import type { StatementOptions, UnitConnection } from '../../../src/storage/own-kysely.ts';
import type { CommitSync } from '../../../src/storage/sqlite/commit-sync.ts';
import { slotOf, sqliteDialect } from '../../../src/storage/sqlite/sqlite-dialect.ts';

export interface Notes {
  notes: { id: string };
}

/**
 * A handle of a file with one table.
 *
 * @param fault called before each command of a transaction; what it throws is what SQLite answers.
 */
export function openNotes(
  file: string,
  { fault, sync }: { fault?: (command: string) => void; sync?: CommitSync } = {},
) {
  const handle = new Sqlite(file);
  handle.pragma('journal_mode = WAL');
  handle.exec('create table if not exists notes (id text primary key)');
  const commands: string[] = [];
  const prepare = handle.prepare.bind(handle);
  handle.prepare = ((text: string) => {
    const statement = prepare(text);
    if (!/^(begin|commit|rollback|savepoint|release)/.test(text)) return statement;
    return {
      ...{ reader: false, readonly: true },
      run: () => {
        fault?.(text);
        commands.push(text);
        return statement.run();
      },
    };
  }) as typeof handle.prepare;
  const slot = slotOf(handle, { sync });
  const database = new Kysely<Notes>({ dialect: sqliteDialect(slot) });
  const begin = () => database.startTransaction().execute();
  const insert = (db: Kysely<Notes>, id: string) => db.insertInto('notes').values({ id }).execute();
  const idsIn = async (db: Kysely<Notes>) =>
    (await db.selectFrom('notes').select('id').orderBy('id').execute()).map(({ id }) => id);
  /** Kysely's own executor does not pass such options on to the connection. */
  const run = (transaction: ControlledTransaction<Notes>, query: CompiledQuery, options: StatementOptions) =>
    transaction
      .getExecutor()
      .provideConnection((connection) => (connection as UnitConnection).executeQuery(query, options));
  /** The statement with which the transaction is committed. */
  const insertLast = (transaction: ControlledTransaction<Notes>, id: string) =>
    run(transaction, transaction.insertInto('notes').values({ id }).compile(), { commits: true });
  const write = async (id: string) => {
    const transaction = await begin();
    await insert(transaction, id);
    await transaction.commit().execute();
  };
  const reader = new Sqlite(file, { readonly: true });
  /** What another process finds. */
  const committed = () => reader.prepare('select id from notes order by id').pluck().all();
  return { handle, slot, database, commands, begin, insert, insertLast, run, idsIn, write, committed };
}
