import Sqlite, { type Database, type Statement } from 'better-sqlite3';
import type { Life } from './scheduler.ts';

/** Where a statement fails. */
export type Moment = 'begin' | 'read' | 'write' | 'commit';

/** What happens to a statement. After `crash`, nothing of the process reaches the disk any more. */
export type DiskFault =
  | 'busy'
  | 'full'
  /** The commit takes effect and is reported as failed. */
  | 'lost answer'
  | 'crash before'
  | 'crash after';

/** A database that outlives the processes that use it. */
export interface Disk {
  /** The handle of one process. */
  open(life: Life, onCrash: () => void): Database;
  /** What a process that starts now finds. */
  recover(): void;
  /** Reads as an auditor does, outside of all processes. */
  all<Row>(sql: string, ...values: unknown[]): Row[];
  readonly isInTransaction: boolean;
  /** How many rows were ever inserted, changed or deleted: while it stays, so do all tables. */
  changeCount(): number;
  close(): void;
}

const codes = { busy: 'SQLITE_BUSY', full: 'SQLITE_FULL', 'lost answer': 'SQLITE_IOERR' } as const;

/**
 * @param image a database without rows.
 * @param draw the fault at a moment, if any.
 */
export function makeDisk(image: Buffer, draw: (moment: Moment, sql: string) => DiskFault | undefined): Disk {
  const medium = takeMedium(image);
  const { raw, prepared } = medium;

  function open(life: Life, onCrash: () => void): Database {
    const die = (): never => {
      if (!life.isOver) onCrash();
      throw new Error('the process has crashed');
    };
    const guarded = <T>(moment: Moment, sql: string, run: () => T): T => {
      if (life.isOver) die();
      const fault = draw(moment, sql);
      if (fault === undefined) return run();
      if (fault === 'crash before') return die();
      if (fault === 'crash after' || fault === 'lost answer') {
        const result = run();
        if (fault === 'crash after') die();
        if (moment !== 'commit') return result;
      }
      throw new Sqlite.SqliteError(`simulated: ${fault}`, codes[fault as keyof typeof codes]);
    };
    const prepare = (sql: string) => {
      const statement = prepared(sql);
      const moment = momentOf(sql, statement.readonly);
      return {
        reader: statement.reader,
        readonly: statement.readonly,
        all: (values: unknown[]) => guarded(moment, sql, () => statement.all(values)),
        run: (...values: unknown[]) => {
          if (sql === 'rollback') return life.isOver ? undefined : statement.run();
          return guarded(moment, sql, () => statement.run(...values));
        },
      };
    };
    const exec = (sql: string) => {
      if (sql === 'rollback') return life.isOver ? raw : raw.exec(sql);
      return guarded(momentOf(sql, false), sql, () => raw.exec(sql));
    };
    // The disk stays when a process closes it.
    const own: Record<string, unknown> = { exec, prepare, close: () => undefined, ...medium.settings };
    return new Proxy(raw, {
      get(target, name) {
        if (typeof name === 'string' && Object.hasOwn(own, name)) return own[name];
        if (name === 'inTransaction') return !life.isOver && target.inTransaction;
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  return {
    open,
    recover() {
      if (raw.inTransaction) raw.exec('rollback');
    },
    all: <Row>(sql: string, ...values: unknown[]) => prepared(sql).all(...values) as Row[],
    get isInTransaction() {
      return raw.inTransaction;
    },
    changeCount() {
      return (prepared('select total_changes() as count').get() as { count: number }).count;
    },
    close: () => leaveMedium(medium),
  };
}

/** A database in memory that simulations use one after the other, with what is prepared for it. */
interface Medium {
  readonly image: Buffer;
  readonly raw: Database;
  readonly statements: ReadonlyMap<string, unknown>;
  prepared(sql: string): Statement<unknown[], unknown>;
  /** Settings and functions, which every process makes again. After a change, SQLite plans all statements again. */
  readonly settings: Pick<Database, 'pragma' | 'aggregate'>;
  /** Deletes all rows. */
  empty(): void;
}

/** Lists of different lengths make new texts. */
const MAX_PREPARED = 2000;

/** What the simulation before has left. Preparing statements takes as long as running most of them in a simulation. */
let spare: Medium | undefined;

function takeMedium(image: Buffer): Medium {
  const taken = spare?.image === image ? spare : openMedium(image);
  spare = undefined;
  return taken;
}

function leaveMedium(medium: Medium): void {
  if (medium.statements.size > MAX_PREPARED) {
    medium.raw.close();
    return;
  }
  medium.empty();
  spare?.raw.close();
  spare = medium;
}

function openMedium(image: Buffer): Medium {
  const raw = new Sqlite(image);
  raw.pragma('foreign_keys = ON');
  const statements = new Map<string, Statement<unknown[], unknown>>();
  const made = new Set<string>();
  const once = (name: string): boolean => made.size !== made.add(name).size;
  const tables = raw
    .prepare<[], { name: string }>("select name from sqlite_schema where type = 'table'")
    .all()
    .map(({ name }) => name)
    .filter((name) => name !== 'sqlite_sequence');
  for (const table of tables)
    if (raw.prepare(`select 1 from ${table}`).get() !== undefined) throw new Error(`${table} has rows`);
  const sequences = raw.prepare<[], { name: string; seq: number }>('select * from sqlite_sequence').all();
  const empty = raw.transaction(() => {
    for (const table of [...tables, 'sqlite_sequence']) prepared(`delete from ${table}`).run();
    for (const { name, seq } of sequences)
      prepared('insert into sqlite_sequence values (?, ?)').run(name, seq);
  });
  function prepared(sql: string): Statement<unknown[], unknown> {
    const known = statements.get(sql) ?? raw.prepare<unknown[], unknown>(sql);
    statements.set(sql, known);
    return known;
  }
  return {
    ...{ image, raw, statements, prepared },
    settings: {
      pragma: (text, options) =>
        text.includes('=') && !once(text) ? undefined : raw.pragma(text, options as object),
      aggregate: (name, options) => (once(name) ? raw.aggregate(name, options) : raw),
    },
    empty() {
      if (raw.inTransaction) raw.exec('rollback');
      empty();
    },
  };
}

function momentOf(sql: string, isReadOnly: boolean): Moment {
  if (sql === 'commit') return 'commit';
  if (sql === 'begin immediate') return 'begin';
  return isReadOnly ? 'read' : 'write';
}

/** The content of a database that a first process has prepared. */
export function imageOf(disk: Database): Buffer {
  return disk.serialize();
}
