import { accessFault } from './database-errors.ts';
import { postgresPool, shortTimeouts } from './postgres-dialect.ts';

const TABLE = 'app_cells';

/** The cell that has the data of an app. */
interface PlacedApp {
  readonly app_id: string;
  readonly cell: string;
}

/** The database that contains the cell of each app. */
export interface CellDirectory {
  /** Creates the table if it does not exist. */
  prepare(): Promise<void>;
  /** Returns the cell of an app; undefined for an app without an entry. Rejects while the database is unavailable. */
  find(appId: string): Promise<string | undefined>;
  /** Returns those of these apps that are placed in another cell than this one. */
  placedElsewhere(cell: string, appIds: readonly string[]): Promise<readonly PlacedApp[]>;
  /** Places a new app. Returns false if the app already has an entry. */
  place(app: PlacedApp): Promise<boolean>;
  /** Removes the entry of an app that was not created. */
  remove(app: PlacedApp): Promise<void>;
  /** Returns those of these apps that have no entry. */
  withoutEntry(appIds: readonly string[]): Promise<readonly string[]>;
  /** Places an app in another cell. Returns false if the app is in none of the two cells. */
  move(app: { readonly app_id: string; readonly from: string; readonly to: string }): Promise<boolean>;
  /** Returns the number of apps with an entry, by cell. */
  countByCell(): Promise<ReadonlyMap<string, number>>;
  close(): Promise<void>;
}

/** Thrown when the directory cannot be read or changed. */
class DirectoryError extends Error {
  constructor(cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const fault =
      code === '42P01'
        ? `lacks its table \`${TABLE}\`: restore it, or make an empty one with \`custos migrate\``
        : (accessFault(cause) ?? `cannot be used: ${message}`);
    super(`the directory of apps (directory_url) ${fault}`, { cause });
    this.name = 'DirectoryError';
  }
}

export function openCellDirectory(url: string, onConnectionError: (error: Error) => void): CellDirectory {
  const pool = postgresPool({ connectionString: url, max: 4 }, onConnectionError, shortTimeouts);
  const query = async <Row extends object>(
    text: string,
    values: readonly (string | readonly string[])[] = [],
  ) => {
    try {
      return (await pool.query<Row>(text, [...values])).rows;
    } catch (error) {
      throw new DirectoryError(error);
    }
  };
  return {
    async prepare() {
      const create = () =>
        query(
          `create table if not exists ${TABLE} (app_id text primary key, cell text not null, placed_at timestamptz not null default now())`,
        );
      // Most calls find the table, and its user may not be allowed to create tables.
      const [found] = await query<{ isMade: boolean }>(
        `select to_regclass('${TABLE}') is not null as "isMade"`,
      );
      if (found?.isMade === true) return;
      // Try twice: another process may create the table at the same time, which `if not exists` does not prevent.
      await create().catch(create);
    },
    async find(appId) {
      const [row] = await query<PlacedApp>(`select cell from ${TABLE} where app_id = $1`, [appId]);
      return row?.cell;
    },
    placedElsewhere: (cell, appIds) =>
      query<PlacedApp>(
        `select app_id, cell from ${TABLE} where app_id = any($1) and cell <> $2 order by app_id`,
        [appIds, cell],
      ),
    async place({ app_id: appId, cell }) {
      const rows = await query(
        `insert into ${TABLE} (app_id, cell) values ($1, $2) on conflict do nothing returning app_id`,
        [appId, cell],
      );
      return rows.length > 0;
    },
    async remove({ app_id: appId, cell }) {
      await query(`delete from ${TABLE} where app_id = $1 and cell = $2`, [appId, cell]);
    },
    async withoutEntry(appIds) {
      const rows = await query<{ id: string }>(
        `select id from unnest($1::text[]) as id where not exists (select 1 from ${TABLE} where app_id = id)`,
        [appIds],
      );
      return rows.map(({ id }) => id);
    },
    async move({ app_id: appId, from, to }) {
      const rows = await query(
        `insert into ${TABLE} as known (app_id, cell) values ($1, $3)
         on conflict (app_id) do update set cell = $3 where known.cell in ($2, $3) returning app_id`,
        [appId, from, to],
      );
      return rows.length > 0;
    },
    async countByCell() {
      const rows = await query<{ cell: string; apps: string }>(
        `select cell, count(*) as apps from ${TABLE} group by cell`,
      );
      return new Map(rows.map(({ cell, apps }) => [cell, Number(apps)]));
    },
    close: () => pool.end(),
  };
}
