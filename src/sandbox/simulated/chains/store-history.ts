import type { ChainStore } from './store.ts';

/**
 * Records changes, so that the development methods of JSON-RPC can undo them. Triggers write the inverse of each
 * change of an EVM chain into a temporary table (https://www.sqlite.org/undoredo.html). The first JSON-RPC call of a
 * client creates the triggers, so a sandbox that serves only the wallet API does not pay for them.
 */

/** Tables whose changes are never undone: a replaced block stays replaced. */
const LASTING = ['reorganizations'];
const OTHERS = /^(exchange|fiat|issuer)_/;

/**
 * CHOICE: at least the latest 200,000 changes can be undone. At most twice as many are stored, which takes about 120
 * MB.
 */
const MAX_CHANGES = 200_000;

interface Column {
  readonly name: string;
  readonly pk: number;
}

/** The recorded changes of EVM chains, which can be undone. */
interface History {
  /** Starts recording changes, unless that has already begun. */
  begin(): void;
  /** Returns the number of the latest change. */
  position(): number;
  /** Returns whether the changes after a position are still stored. */
  isKnown(position: number): boolean;
  /** Undoes the changes of a chain after a known position. Must be called in a transaction of the store. */
  rollBack(caip2: string, position: number): void;
}

/**
 * Opens the history of a store. All its chains share the table of changes, the triggers, and the limit on stored
 * changes.
 */
export function makeHistory(store: ChainStore): History {
  /** The version of the content for which the triggers were created. Replacing the content deletes them. */
  let content: number | undefined;
  /** The number of the last change before recording started. */
  let earlier = 0;
  /** Returns the number of the newest change that is no longer stored, over all chains. */
  const deleted = (): number =>
    store.first<{ last: number | null }>('select max(position) as last from temp.deleted_changes')?.last ?? 0;
  /**
   * Returns the number of the latest change. From time to time, it also deletes many of the oldest changes together.
   */
  function position(): number {
    const last =
      store.first<{ last: number }>("select seq as last from temp.sqlite_sequence where name = 'changes'")
        ?.last ?? 0;
    if (last - deleted() > 2 * MAX_CHANGES) {
      store.run('delete from temp.changes where id <= ?', last - MAX_CHANGES);
      store.run('insert into temp.deleted_changes (position) values (?)', last - MAX_CHANGES);
    }
    return last;
  }
  return {
    begin() {
      if (content === store.content()) return;
      content = store.content();
      store.exec('pragma recursive_triggers = on');
      store.exec(
        'create temp table if not exists changes (id integer primary key autoincrement, caip2 text not null, sql text not null)',
      );
      store.exec('create temp table if not exists deleted_changes (position integer not null)');
      for (const table of tablesOf(store)) store.exec(triggersOf(store, table));
      earlier = position();
    },
    position,
    isKnown: (at) => content === store.content() && at >= Math.max(earlier, deleted()),
    rollBack(caip2, to) {
      const changes = store.all<{ sql: string }>(
        'select sql from temp.changes where caip2 = ? and id > ? order by id desc',
        ...[caip2, to],
      );
      for (const { sql } of changes) store.exec(sql);
      // This also deletes the changes that undoing has recorded.
      store.run('delete from temp.changes where caip2 = ? and id > ?', caip2, to);
    },
  };
}

function tablesOf(store: ChainStore): string[] {
  const tables = store.all<{ name: string }>(
    `select m.name from main.sqlite_master m join pragma_table_info(m.name) c on c.name = 'caip2'
     where m.type = 'table' order by m.name`,
  );
  return tables.map(({ name }) => name).filter((name) => !OTHERS.test(name) && !LASTING.includes(name));
}

function triggersOf(store: ChainStore, table: string): string {
  const columns = store.all<Column>(`select name, pk from pragma_table_info('${table}')`);
  const keys = columns.filter(({ pk }) => pk > 0);
  const where = keys.map(({ name }) => `${name} = ' || quote(new.${name})`).join(" || ' and ");
  const before = columns.map(({ name }) => `quote(old.${name})`);
  const assignments = columns.map(({ name }, at) => `${name} = ' || ${before[at]}`).join(" || ', ");
  const trigger = (event: 'insert' | 'update' | 'delete', row: 'new' | 'old', sql: string): string =>
    `create temp trigger if not exists undo_${event}_${table} after ${event} on main.${table}
     when ${row}.caip2 glob 'eip155:*' begin
       insert into changes (caip2, sql) values (${row}.caip2, ${sql});
     end;`;
  return [
    trigger('insert', 'new', `'delete from main.${table} where ${where}`),
    trigger('update', 'new', `'update main.${table} set ${assignments} || ' where ${where}`),
    trigger('delete', 'old', `'insert into main.${table} values (' || ${before.join(" || ', ' || ")} || ')'`),
  ].join('\n');
}
