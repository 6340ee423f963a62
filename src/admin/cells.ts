import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import {
  type CellSettings,
  type CellsFile,
  type CellsSettings,
  checkCellsFile,
  databaseOfCell,
  ONLY_CELL,
  unknownCell,
} from '../config/cells.ts';
import {
  ConfigError,
  type DatabaseConfig,
  type DatabaseFlags,
  readCells,
  readCellsPath,
  readDatabaseConfig,
} from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { type CellDirectory, openCellDirectory } from '../storage/cell-directory.ts';
import { pendingMigrations } from '../storage/migrate.ts';
import {
  distributeSchema,
  isDistributable,
  makeSchema,
  placeOf,
  schemaOf,
  searchPathOf,
} from '../storage/schema/cell-schema.ts';
import {
  administerApps,
  asStartError,
  migrateDatabase,
  requireMigrated,
  withDatabase,
} from './administration.ts';

/** A cell, as commands print it. */
export interface ListedCell {
  readonly name: string;
  /** Host, database and schema, without credentials. */
  readonly database: string;
  /** The number of apps that the directory places in it; null when the directory is unavailable. */
  readonly apps: number | null;
  readonly accepts_apps: boolean;
  readonly state: 'ready' | 'lacks migrations' | 'unavailable';
}

/** Runs `work` with the directory of the deployment's cells, and closes the directory. */
export async function withDirectory<T>(
  url: string,
  work: (directory: CellDirectory) => Promise<T>,
): Promise<T> {
  const directory = openCellDirectory(url, () => undefined);
  try {
    return await work(directory);
  } finally {
    await directory.close();
  }
}

/** Creates the table of the directory, if the deployment has several cells. */
export async function prepareDirectory({ directoryUrl }: Pick<CellsSettings, 'directoryUrl'>): Promise<void> {
  if (directoryUrl !== undefined) await withDirectory(directoryUrl, (directory) => directory.prepare());
}

/**
 * Finds the database of an app for a command: the chosen one; or else the cell in which the directory has placed the
 * app; or else the first cell.
 *
 * @throws ConfigError
 */
export async function databaseOfApp(flags: DatabaseFlags, appId: string): Promise<DatabaseConfig> {
  if (flags.data !== undefined || flags.cell !== undefined) return readDatabaseConfig(flags);
  const { directoryUrl, cells } = readCells();
  if (directoryUrl === undefined) return readDatabaseConfig(flags);
  const placed = await withDirectory(directoryUrl, (directory) => directory.find(appId));
  if (placed === undefined) {
    const first = databaseOfCell(cells[0]);
    if (await hasApp(first, appId)) return first;
    throw new StartError(`no cell has an app \`${appId}\`; see \`custos apps list\``);
  }
  const cell = cells.find(({ name }) => name === placed);
  if (cell !== undefined) return databaseOfCell(cell);
  throw new StartError(
    `the directory places the app \`${appId}\` in the cell \`${placed}\`, which \`${readCellsPath()}\` does not have: add it again with \`custos cells add ${placed}\``,
  );
}

function hasApp(config: DatabaseConfig, appId: string): Promise<boolean> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    return (await database.orm.em.fork().execute('select 1 from apps where id = ?', [appId])).length > 0;
  });
}

/**
 * Requires that the directory places no app of a restored cell in another one: such an app was moved after the backup,
 * and would be used in both cells.
 *
 * @throws StartError
 */
export async function requireOwnApps({ data, cell }: DatabaseFlags): Promise<void> {
  if (data !== undefined) return;
  const { directoryUrl, cells } = readCells();
  const chosen =
    cell === undefined && cells.length === 1 ? cells[0] : cells.find(({ name }) => name === cell);
  if (directoryUrl === undefined || chosen === undefined) return;
  const { name } = chosen;
  const apps = await administerApps(databaseOfCell(chosen)).listApps();
  const ids = apps.map(({ id }) => id);
  const [moved] = await withDirectory(directoryUrl, (directory) => directory.placedElsewhere(name, ids));
  if (moved === undefined) return;
  const { app_id: appId, cell: other } = moved;
  throw new StartError(
    `the app \`${appId}\` of this cell was moved to the cell \`${other}\`: remove it here first, with \`custos apps move ${appId} --to ${other}\``,
  );
}

/**
 * Places a new app in a cell, and creates it there. The app is refused by every server until the directory knows its
 * cell, so the directory is written first.
 *
 * CHOICE: without a chosen cell, the cell with the fewest apps among those that accept new ones and can be used now.
 *
 * @param flags `force` places the app even in a drained cell.
 * @param create creates the app with this id in the database of the cell.
 * @returns the app, with its cell in a deployment with a cells file.
 * @throws StartError when no cell accepts apps.
 */
export async function placeApp<App extends object>(
  flags: DatabaseFlags & { readonly force?: boolean },
  appId: string,
  create: (config: DatabaseConfig) => Promise<App>,
): Promise<App & { readonly cell?: string }> {
  if (flags.data !== undefined) return create(readDatabaseConfig(flags));
  const { directoryUrl, cells } = readCells();
  if (directoryUrl === undefined) return create(readDatabaseConfig(flags));
  return withDirectory(directoryUrl, async (directory) => {
    await directory.prepare();
    const chosen =
      flags.cell === undefined
        ? await chooseCell(cells, await directory.countByCell())
        : namedCell(cells, flags.cell, flags.force === true);
    const cell = chosen.name;
    if (!(await directory.place({ app_id: appId, cell })))
      throw new StartError(`the directory already has an app with the id \`${appId}\``);
    try {
      return { ...(await create(databaseOfCell(chosen))), cell };
    } catch (error) {
      await directory.remove({ app_id: appId, cell }).catch((reason: Error) => {
        throw new StartError(
          `${(error as Error).message}; the directory keeps an entry of the app \`${appId}\`, which does not exist (${reason.message})`,
          { cause: error },
        );
      });
      throw error;
    }
  });
}

async function chooseCell(
  cells: readonly CellSettings[],
  apps: ReadonlyMap<string, number>,
): Promise<CellSettings> {
  const candidates = cells
    .filter(({ acceptsApps }) => acceptsApps)
    .toSorted((a, b) => (apps.get(a.name) ?? 0) - (apps.get(b.name) ?? 0));
  const faults: string[] = [];
  for (const cell of candidates) {
    const { state, fault = state } = await stateOf(cell);
    if (state === 'ready') return cell;
    faults.push(`\`${cell.name}\`: ${fault}`);
  }
  if (faults.length > 0)
    throw new StartError(`no cell that accepts new apps can be used: ${faults.join('; ')}`);
  const names = cells.map(({ name }) => `\`${name}\``).join(', ');
  throw new StartError(`no cell accepts new apps; choose one with --cell and --force: ${names}`);
}

function namedCell(cells: readonly CellSettings[], name: string, isForced: boolean): CellSettings {
  const cell = cells.find((each) => each.name === name);
  if (cell === undefined) throw new ConfigError('invalid option:', [unknownCell(cells, name)]);
  if (cell.acceptsApps || isForced) return cell;
  throw new StartError(
    `the cell \`${name}\` is drained: undrain it with \`custos cells undrain ${name}\`, or place the app there with --force`,
  );
}

/** Lists the cells of a deployment with their state, and says in sentences what keeps it from being complete. */
export async function listCells(): Promise<{ cells: ListedCell[]; faults: string[] }> {
  const { directoryUrl, cells } = readCells();
  const faults: string[] = [];
  const apps =
    directoryUrl === undefined
      ? undefined
      : await withDirectory(directoryUrl, (directory) => directory.countByCell()).catch((error: Error) => {
          faults.push(error.message);
          return undefined;
        });
  const listed = cells.map(async (cell): Promise<ListedCell> => {
    const { name, databaseUrl, acceptsApps } = cell;
    const { state, fault } = await stateOf(cell);
    if (fault !== undefined) faults.push(fault);
    return {
      ...{ name, database: withoutCredentials(databaseUrl), accepts_apps: acceptsApps },
      ...{ apps: apps === undefined ? null : (apps.get(name) ?? 0), state },
    };
  });
  return { cells: await Promise.all(listed), faults: [...faults, ...unknownCells(cells, apps)] };
}

/** Returns a sentence for each cell in which the directory places apps, and which is not among these. */
export function unknownCells(
  cells: readonly Pick<CellSettings, 'name'>[],
  apps: ReadonlyMap<string, number> = new Map(),
): string[] {
  return [...apps]
    .filter(([cell]) => !cells.some(({ name }) => name === cell))
    .map(
      ([cell, count]) =>
        `the directory places ${count} app(s) in the cell \`${cell}\`, which the cells file does not have: their requests get 503`,
    );
}

async function stateOf(cell: CellSettings): Promise<Pick<ListedCell, 'state'> & { fault?: string }> {
  try {
    const pending = await withDatabase(databaseOfCell(cell), ({ orm }) => pendingMigrations(orm));
    return { state: pending.length === 0 ? 'ready' : 'lacks migrations' };
  } catch (error) {
    return { state: 'unavailable', fault: (error as Error).message };
  }
}

function withoutCredentials(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  const schema = searchPathOf(databaseUrl);
  return `${url.host}${url.pathname}${schema === undefined ? '' : ` ${schema}`}`;
}

interface NewCell {
  readonly name: string;
  readonly databaseUrl: string;
  /** Whether Citus distributes the schema, so that it can be moved to another node. */
  readonly distribute: boolean;
  /** Required for the first cell of a file that does not exist yet. */
  readonly directoryUrl: string | undefined;
}

/**
 * Creates the schema of a new cell, migrates it, and adds the cell to the cells file. After a failure, the call can be
 * repeated.
 *
 * @returns the names of the migrations that ran.
 * @throws ConfigError, StartError
 */
export async function addCell(path: string, cell: NewCell): Promise<string[]> {
  const file = openFile(path, cell.directoryUrl);
  const known = file.cells.find(({ name }) => name === cell.name);
  if (known !== undefined && known.database_url !== cell.databaseUrl)
    throw new ConfigError('invalid argument:', [`the cell \`${cell.name}\` has another database_url`]);
  const next =
    known === undefined
      ? { ...file, cells: [...file.cells, { name: cell.name, database_url: cell.databaseUrl }] }
      : file;
  const faults: string[] = [];
  checkCellsFile(faults, next, { variable: 'the new content', path });
  if (faults.length > 0) throw new ConfigError('invalid argument:', faults);
  requireNamedSchema(cell.databaseUrl);
  await requireOwnSchema(cell, file.cells);
  if (cell.distribute) await requireDistributable(cell.databaseUrl);
  await makeSchema(cell.databaseUrl).catch((error: unknown) => {
    throw asStartError(error, cell.name);
  });
  const run = await migrateDatabase(databaseOfCell(cell), { dryRun: false });
  if (cell.distribute) await distributeSchema(cell.databaseUrl);
  await prepareDirectory({ directoryUrl: file.directory_url });
  if (next !== file) writeFile(path, next);
  return run;
}

/** Requires that no other cell has the same schema of the same database, whatever its URL is. */
async function requireOwnSchema({ name, databaseUrl }: NewCell, known: CellsFile['cells']): Promise<void> {
  const own = await placeOf(databaseUrl).catch((error: unknown) => {
    throw asStartError(error, name);
  });
  for (const other of known) {
    if (other.name === name) continue;
    // A cell that cannot be reached now is compared by the servers when they start.
    const place = await placeOf(other.database_url).catch(() => undefined);
    if (place === own)
      throw new ConfigError('invalid option:', [
        `--database-url: expected another database or schema than that of the cell \`${other.name}\``,
      ]);
  }
}

function requireNamedSchema(databaseUrl: string): void {
  const searchPath = searchPathOf(databaseUrl);
  if (searchPath === undefined || schemaOf(databaseUrl) !== undefined) return;
  throw new ConfigError('invalid option:', [
    `--database-url: expected a search_path that begins with a schema of at most 63 lower-case letters, digits and \`_\`, such as \`eu1\`, got \`${searchPath}\``,
  ]);
}

async function requireDistributable(databaseUrl: string): Promise<void> {
  if (schemaOf(databaseUrl) === undefined)
    throw new ConfigError('invalid option:', [
      '--distribute: expected a database URL that names a schema, with `?options=-c%20search_path%3Deu1`',
    ]);
  if (await isDistributable(databaseUrl)) return;
  throw new StartError('the database does not have the extension `citus`, which --distribute needs');
}

/** Opens or closes a cell for new apps. */
export function acceptApps(path: string, name: string, isAccepting: boolean): void {
  const file = openFile(path, undefined);
  const cell = file.cells.find((each) => each.name === name);
  if (cell === undefined) {
    const names = file.cells.map((each) => `\`${each.name}\``).join(', ');
    throw new ConfigError('invalid argument:', [`expected one of ${names}, got \`${name}\``]);
  }
  cell.accepts_apps = isAccepting;
  writeFile(path, file);
}

function openFile(path: string, directoryUrl: string | undefined): CellsFile {
  if (existsSync(path)) {
    readCells({ CUSTOS_CELLS_FILE: path });
    const file = JSON.parse(readFileSync(path, 'utf8')) as CellsFile;
    if (directoryUrl === undefined || directoryUrl === file.directory_url) return file;
    throw new ConfigError('invalid option:', [
      `--directory-url: \`${path}\` names another directory; omit the option, or edit the file`,
    ]);
  }
  if (directoryUrl !== undefined) return { directory_url: directoryUrl, cells: [] };
  throw new ConfigError('invalid option:', [`\`${path}\` does not exist yet: expected --directory-url`]);
}

/** Replaces the file atomically, so that a server that starts never reads half of it. */
function writeFile(path: string, file: CellsFile): void {
  const mode = existsSync(path) ? statSync(path).mode & 0o777 : 0o600;
  const written = `${path}.${process.pid}`;
  writeFileSync(written, `${JSON.stringify(file, undefined, 2)}\n`, { mode });
  renameSync(written, path);
}

/**
 * Returns whether a printed list needs a column with the cell. It needs none for a deployment without a cells file,
 * which has only one cell.
 */
export function hasCells(cells: readonly { readonly cell: string }[]): boolean {
  return cells.length > 1 || cells[0]?.cell !== ONLY_CELL;
}
